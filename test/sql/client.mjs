// DuckDB for Node with the extension loaded, for the SQL tests. usage: node client.mjs EXTENSION
//
// Reads and answers as client.py does. NODE_PATH does not work for modules, so EVTX_NODE names the folder with the package.

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const { DuckDBInstance } = createRequire(`${process.env.EVTX_NODE}/`)('@duckdb/node-api');
const instance = await DuckDBInstance.create(':memory:', { allow_unsigned_extensions: 'true' });
const connection = await instance.connect();
await connection.run(`LOAD '${process.argv[2]}'`);

// duckdb_statement_type: a statement with rows.
const SELECT = 1;

/** The rows of a statement, as texts by DuckDB's own casts. */
async function answer(sql) {
  const statement = sql.replace(/;\s*$/, '');
  const prepared = await connection.prepare(statement);
  if (prepared.statementType !== SELECT) {
    const result = await prepared.run();
    return result.columnCount > 0 && result.rowCount > 0 ? texts(await result.getRows()) : {};
  }
  const columns = Array.from({ length: prepared.columnCount }, (_, i) => `#${i + 1}::VARCHAR`);
  const result = await connection.run(`SELECT ${columns.join(', ')} FROM (${statement}\n)`);
  return { columns: columns.length, ...texts(await result.getRows()) };
}

function texts(rows) {
  const shown = (value) => (value === null ? 'NULL' : value === '' ? '(empty)' : String(value));
  return { columns: rows[0]?.length, rows: rows.map((row) => row.map(shown)) };
}

for await (const line of createInterface({ input: process.stdin })) {
  let output;
  try {
    output = await answer(JSON.parse(line));
  } catch (error) {
    output = { error: error.message };
  }
  console.log(JSON.stringify(output));
}
