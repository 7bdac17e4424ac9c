import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * A DuckDB client with the extension loaded, for the SQL tests on platforms for which Python is not at hand. Speaks the protocol of client.py.
 * usage: java -cp CLASSES:JAR Client EXTENSION
 */
public class Client {
    /** Statements that can be a subquery. */
    private static final Pattern QUERY =
            Pattern.compile("(\\s|--[^\\n]*\\n)*(SELECT|FROM|WITH|DESCRIBE|SUMMARIZE|SHOW)\\b.*", Pattern.DOTALL | Pattern.CASE_INSENSITIVE);

    public static void main(String[] args) throws Exception {
        var config = new Properties();
        config.setProperty("allow_unsigned_extensions", "true");
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        try (var connection = DriverManager.getConnection("jdbc:duckdb:", config);
                var json = connection.prepareStatement("SELECT ?::JSON ->> '$'");
                var requests = new BufferedReader(new InputStreamReader(new FileInputStream(FileDescriptor.in), StandardCharsets.UTF_8))) {
            connection.createStatement().execute("LOAD '" + args[0] + "'");
            for (String line; (line = requests.readLine()) != null; ) {
                json.setString(1, line);
                String answer;
                try (var decoded = json.executeQuery()) {
                    decoded.next();
                    answer = answer(connection, decoded.getString(1));
                } catch (SQLException error) {
                    answer = "{\"error\": " + quoted(error.getMessage()) + "}";
                }
                out.println(answer);
                out.flush();
            }
        }
    }

    private static String answer(Connection connection, String sql) throws SQLException {
        if (QUERY.matcher(sql).matches()) {
            sql = texts(connection, sql);
        }
        try (var statement = connection.createStatement()) {
            if (!statement.execute(sql)) {
                return "{}";
            }
            var found = statement.getResultSet();
            int columns = found.getMetaData().getColumnCount();
            List<String> rows = new ArrayList<>();
            while (found.next()) {
                List<String> row = new ArrayList<>();
                for (int i = 1; i <= columns; i++) {
                    String value = found.getString(i);
                    row.add(quoted(value == null ? "NULL" : value.isEmpty() ? "(empty)" : value));
                }
                rows.add("[" + String.join(", ", row) + "]");
            }
            return "{\"columns\": " + columns + ", \"rows\": [" + String.join(", ", rows) + "]}";
        }
    }

    /** The query with each column as DuckDB's text. */
    private static String texts(Connection connection, String sql) throws SQLException {
        try (var query = connection.prepareStatement(sql)) {
            String columns = IntStream.rangeClosed(1, query.getMetaData().getColumnCount())
                    .mapToObj(i -> "#" + i + "::VARCHAR").collect(Collectors.joining(", "));
            return "SELECT " + columns + " FROM (" + sql + "\n)";
        }
    }

    private static String quoted(String text) {
        var out = new StringBuilder("\"");
        for (char letter : text.toCharArray()) {
            if (letter == '"' || letter == '\\') {
                out.append('\\').append(letter);
            } else if (letter < ' ') {
                out.append(String.format("\\u%04x", (int) letter));
            } else {
                out.append(letter);
            }
        }
        return out.append('"').toString();
    }
}
