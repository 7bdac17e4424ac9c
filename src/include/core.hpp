#pragma once

//! The Rust core through its C ABI: owned handles, exceptions in place of error texts, Arrow structs that release
//! themselves.

#include "duckdb/common/arrow/arrow.hpp"
#include "evtx_ffi.h"
#include "hints.hpp"
#include "interrupt.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace evtx {

//! An Arrow struct that is released when it goes out of scope, unless it was consumed.
template <class T>
struct Released : T {
	Released() : T {} {}
	Released(const Released &) = delete;
	Released &operator=(const Released &) = delete;
	~Released() {
		if (this->release) {
			this->release(this);
		}
	}
};

using Schema = Released<ArrowSchema>;
using Array = Released<ArrowArray>;

//! The position of a block in the order of all rows, by its number in a file and the number of that among so many.
//! @throws duckdb::cxx::Exception if there is no room for so large a file among so many.
std::uint64_t GetBatchIndex(std::uint64_t files, std::uint64_t file, std::uint64_t block);

//! A path as text: what is not UTF-8 in it becomes U+FFFD.
std::string GetPathText(std::string_view path);

//! Most rows of a batch in one vector of DuckDB.
constexpr std::size_t VECTOR_ROWS = 2048;

//! The choice for `on_error` that a name stands for.
//! @throws duckdb::cxx::Exception that lists the choices.
EvtxOnError ParseOnError(std::string_view name);

//! Certain events: their IDs, and their provider if that matters.
struct Events {
	std::vector<std::uint32_t> ids;
	std::optional<std::string> provider;
};

//! What is told of whole files.
class Report {
public:
	//! A report of a kind. One of events can be about certain events only.
	explicit Report(EvtxReportKind kind, const Events *events = nullptr);

	//! Fills in the schema of the batches.
	void GetSchema(Schema &schema) const;
	//! Begins a file of `size` bytes.
	void Start(std::string_view filename, std::uint64_t size);
	//! Takes the next bytes of the file: its header alone, then whole chunks. Returns why the rest cannot be read, if
	//! it cannot.
	//! @throws duckdb::cxx::Exception if the query was interrupted.
	std::optional<std::string> Push(const std::vector<std::uint8_t> &bytes, Interrupt &interrupt);
	//! Ends the file. `failure` is why the rest of it was not read, if it was not.
	void End(const std::optional<std::string> &failure);
	//! Moves the rows since the last time into `array`. Returns whether there are any. `last` says that no file
	//! follows.
	bool Flush(bool last, Array &array);

private:
	friend class Table;
	struct Free {
		void operator()(EvtxReport *report) const {
			evtx_report_free(report);
		}
	};
	std::unique_ptr<EvtxReport, Free> handle;
};

//! The columns of a call, and the events that it is about.
class Table {
public:
	//! Of all events.
	explicit Table(const EvtxOptions &options);
	//! Of certain events, with a column for each of their fields that a report of these events has found.
	Table(const EvtxOptions &options, const Events &events, const Report &report);

	//! Fills in the columns.
	void GetSchema(Schema &schema) const;
	//! The number of columns.
	std::uint64_t ColumnCount() const;

private:
	friend class Filter;
	friend class Scan;
	struct Free {
		void operator()(EvtxTable *table) const {
			evtx_table_free(table);
		}
	};
	std::unique_ptr<EvtxTable, Free> handle;
};

//! What of a table's rows a query does not want, as far as the core decides it.
class Filter {
public:
	//! By the predicates that hints have of a query.
	Filter(const Table &table, const Hints &hints);

	//! Whether a file's path alone tells that none of its rows is wanted.
	bool DropsFile(std::string_view filename) const;

private:
	friend class Scan;
	struct Free {
		void operator()(EvtxFilter *filter) const {
			evtx_filter_free(filter);
		}
	};
	std::unique_ptr<EvtxFilter, Free> handle;
};

//! What the threads of a query share.
class Scan {
public:
	//! A scan of the columns with these indexes in the table's schema, in this order, without the rows that the filter
	//! drops.
	Scan(const Table &table, const std::vector<std::uintptr_t> &columns, const Filter &filter);

	//! Fills in the schema of the batches, with maps as lists of their entries.
	void GetSchema(Schema &schema) const;
	//! Whether the messages that stand beside a log are of use.
	bool ReadsMessages() const;

private:
	friend class Decoder;
	struct Free {
		void operator()(EvtxScan *scan) const {
			evtx_scan_free(scan);
		}
	};
	std::unique_ptr<EvtxScan, Free> handle;
};

//! Finds out how a file is laid out, from ranges of it that the caller reads.
class Survey {
public:
	//! Of a remote file it wants few ranges. With `recover`, a file that is no log may hold chunks.
	Survey(std::uint64_t file_size, bool remote, bool recover);

	struct Range {
		std::uint64_t offset;
		std::uintptr_t len;
	};
	//! The range to read and push next; none once the survey is done.
	std::optional<Range> Wants() const;
	//! Takes the bytes of the range. Returns why the file is not a log, if it is none.
	std::optional<std::string> Push(const std::vector<std::uint8_t> &bytes);
	//! What the checksum of the file's header says is wrong, if anything.
	std::optional<std::string> Verify() const;
	//! How many blocks the file has.
	std::uint64_t BlockCount() const;
	//! A block, by its number in the order of the records.
	EvtxBlock GetBlock(std::uint64_t number) const;

private:
	friend class Decoder;
	struct Free {
		void operator()(EvtxSurvey *survey) const {
			evtx_survey_free(survey);
		}
	};
	std::unique_ptr<EvtxSurvey, Free> handle;
};

//! The messages that stand beside a log.
class Messages {
public:
	//! Messages to be read from a file of `size` bytes. None if they may take more than `memory` bytes.
	static std::optional<Messages> Create(std::uint64_t size, std::uint64_t memory);
	//! How many bytes of memory they may take.
	std::uint64_t Memory() const {
		return memory;
	}
	//! Takes the next bytes of the file.
	void Push(const std::vector<std::uint8_t> &bytes);
	//! Reads the file, once all of it was pushed. Returns false if it is damaged.
	bool Read(Interrupt &interrupt);
	//! The glob of the files that may hold the messages of a log. `place` is that glob from the log's folder on, with
	//! `{log}` for the log's name.
	static std::optional<std::string> GetPattern(std::string_view log, std::string_view place);

private:
	friend class Decoder;
	struct Free {
		void operator()(EvtxMessages *messages) const {
			evtx_messages_free(messages);
		}
	};
	std::unique_ptr<EvtxMessages, Free> handle;
	std::uint64_t memory = 0;
};

//! Decodes blocks of files into batches, for one thread.
class Decoder {
public:
	explicit Decoder(const Scan &scan);

	//! Begins the block with a number of a file, with the messages that stand beside the file or null.
	void Start(std::string_view filename, const Messages *messages, const Survey &survey, std::uint64_t block);
	//! Decodes until the batch is full or the block is done. Takes what is left of the block, returns how many bytes
	//! were consumed.
	//! @throws duckdb::cxx::Exception at damage, if the scan was told to fail at it, and if the query was interrupted.
	std::uintptr_t Decode(const std::uint8_t *data, std::uintptr_t len, Interrupt &interrupt);
	//! Moves the batch into `array`. Returns whether it has any rows.
	bool Flush(Array &array);
	//! Whether all of the block was decoded.
	bool IsDone() const;
	//! Adds a row that says what is wrong with a file, or does what the scan was told to do at errors.
	void ReportFile(std::string_view filename, std::string_view what);

private:
	struct Free {
		void operator()(EvtxDecoder *decoder) const {
			evtx_decoder_free(decoder);
		}
	};
	std::unique_ptr<EvtxDecoder, Free> handle;
};

} // namespace evtx
