#include "core.hpp"

#include "duckdb_cpp.hpp"
#include "duckdb_v2.h"

#include <utility>

namespace evtx {

namespace {

//! Takes over an error text of the core.
std::optional<std::string> TakeError(char *error) {
	const std::unique_ptr<char, decltype(&evtx_error_free)> owned(error, evtx_error_free);
	return owned ? std::optional<std::string>(owned.get()) : std::nullopt;
}

void Check(char *error) {
	if (auto text = TakeError(error)) {
		throw duckdb::cxx::InvalidInputException(*text);
	}
}

//! A text that a function of the core writes: given a place, room there, and where to put the length.
template <class Write>
std::string GetText(Write write) {
	std::uintptr_t len = 0;
	Check(write(nullptr, 0, &len));
	std::string text(len, '\0');
	Check(write(text.data(), len + 1, &len));
	return text;
}

EvtxEvents Borrow(const Events &events) {
	EvtxEvents borrowed {};
	borrowed.ids = events.ids.data();
	borrowed.id_count = events.ids.size();
	borrowed.provider = events.provider ? events.provider->data() : nullptr;
	borrowed.provider_len = events.provider ? events.provider->size() : 0;
	return borrowed;
}

} // namespace

EvtxOnError ParseOnError(std::string_view name) {
	std::uint32_t on_error = 0;
	if (auto choices = TakeError(evtx_on_error(name.data(), name.size(), &on_error))) {
		throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_QUERY_BINDER, *choices);
	}
	return static_cast<EvtxOnError>(on_error);
}

std::uint64_t GetBatchIndex(std::uint64_t files, std::uint64_t file, std::uint64_t block) {
	std::uint64_t index = 0;
	Check(evtx_batch_index(files, file, block, &index));
	return index;
}

std::string GetPathText(std::string_view path) {
	return GetText([&](char *out, std::uintptr_t capacity, std::uintptr_t *len) {
		return evtx_path_text(reinterpret_cast<const std::uint8_t *>(path.data()), path.size(), out, capacity, len);
	});
}

Report::Report(EvtxReportKind kind, const Events *events) {
	EvtxReport *report = nullptr;
	const auto borrowed = events ? Borrow(*events) : EvtxEvents {};
	Check(evtx_report_new(static_cast<std::uint32_t>(kind), events ? &borrowed : nullptr, &report));
	handle.reset(report);
}

void Report::GetSchema(Schema &schema) const {
	Check(evtx_report_schema(handle.get(), &schema));
}

void Report::Start(std::string_view filename, std::uint64_t size) {
	Check(evtx_report_start(handle.get(), filename.data(), filename.size(), size));
}

std::optional<std::string> Report::Push(const std::vector<std::uint8_t> &bytes, Interrupt &interrupt) {
	auto why_not = TakeError(evtx_report_push(handle.get(), bytes.data(), bytes.size(), interrupt.ForCore()));
	interrupt.Check();
	return why_not;
}

void Report::End(const std::optional<std::string> &failure) {
	Check(evtx_report_end(handle.get(), failure ? failure->data() : nullptr, failure ? failure->size() : 0));
}

bool Report::Flush(bool last, Array &array) {
	std::uintptr_t rows = 0;
	Check(evtx_report_flush(handle.get(), last, &array, &rows));
	return rows > 0;
}

Table::Table(const EvtxOptions &options) {
	EvtxTable *table = nullptr;
	Check(evtx_table_new(options, &table));
	handle.reset(table);
}

Table::Table(const EvtxOptions &options, const Events &events, const Report &report) {
	EvtxTable *table = nullptr;
	const auto borrowed = Borrow(events);
	Check(evtx_table_of_events(options, &borrowed, report.handle.get(), &table));
	handle.reset(table);
}

void Table::GetSchema(Schema &schema) const {
	Check(evtx_table_schema(handle.get(), &schema));
}

std::uint64_t Table::ColumnCount() const {
	std::uint64_t count = 0;
	Check(evtx_table_columns(handle.get(), &count));
	return count;
}

Filter::Filter(const Table &table, const Hints &hints) {
	EvtxFilter *filter = nullptr;
	const auto *const bytes = reinterpret_cast<const std::uint8_t *>(hints.bytes.data());
	Check(evtx_filter_new(table.handle.get(), hints.nodes.data(), hints.nodes.size(), bytes, hints.bytes.size(),
	                      &filter));
	handle.reset(filter);
}

bool Filter::DropsFile(std::string_view filename) const {
	bool drops = false;
	Check(evtx_filter_drops_file(handle.get(), filename.data(), filename.size(), &drops));
	return drops;
}

Scan::Scan(const Table &table, const std::vector<std::uintptr_t> &columns, const Filter &filter) {
	EvtxScan *scan = nullptr;
	Check(evtx_scan_new(table.handle.get(), columns.data(), columns.size(), filter.handle.get(), &scan));
	handle.reset(scan);
}

void Scan::GetSchema(Schema &schema) const {
	Check(evtx_scan_schema(handle.get(), &schema));
}

bool Scan::ReadsMessages() const {
	bool reads = false;
	Check(evtx_scan_reads_messages(handle.get(), &reads));
	return reads;
}

Survey::Survey(std::uint64_t file_size, bool remote, bool recover) {
	EvtxSurvey *survey = nullptr;
	Check(evtx_survey_new(file_size, remote, recover, &survey));
	handle.reset(survey);
}

std::optional<Survey::Range> Survey::Wants() const {
	Range range {};
	bool wants = false;
	Check(evtx_survey_wants(handle.get(), &range.offset, &range.len, &wants));
	return wants ? std::optional<Range>(range) : std::nullopt;
}

std::optional<std::string> Survey::Push(const std::vector<std::uint8_t> &bytes) {
	return TakeError(evtx_survey_push(handle.get(), bytes.data(), bytes.size()));
}

std::optional<std::string> Survey::Verify() const {
	return TakeError(evtx_survey_verify(handle.get()));
}

std::uint64_t Survey::BlockCount() const {
	std::uint64_t count = 0;
	Check(evtx_survey_blocks(handle.get(), &count));
	return count;
}

EvtxBlock Survey::GetBlock(std::uint64_t number) const {
	EvtxBlock block {};
	Check(evtx_survey_block(handle.get(), number, &block));
	return block;
}

std::optional<Messages> Messages::Create(std::uint64_t size, std::uint64_t memory) {
	EvtxMessages *messages = nullptr;
	if (TakeError(evtx_messages_new(size, &memory, &messages))) {
		return std::nullopt;
	}
	Messages result;
	result.handle.reset(messages);
	result.memory = memory;
	return result;
}

void Messages::Push(const std::vector<std::uint8_t> &bytes) {
	Check(evtx_messages_push(handle.get(), bytes.data(), bytes.size()));
}

bool Messages::Read(Interrupt &interrupt) {
	const auto error = TakeError(evtx_messages_read(handle.get(), interrupt.ForCore()));
	interrupt.Check();
	return !error;
}

std::optional<std::string> Messages::GetPattern(std::string_view log, std::string_view place) {
	auto pattern = GetText([&](char *out, std::uintptr_t capacity, std::uintptr_t *len) {
		return evtx_messages_pattern(log.data(), log.size(), place.data(), place.size(), out, capacity, len);
	});
	return pattern.empty() ? std::nullopt : std::optional<std::string>(std::move(pattern));
}

Decoder::Decoder(const Scan &scan) {
	EvtxDecoder *decoder = nullptr;
	Check(evtx_decoder_new(scan.handle.get(), &decoder));
	handle.reset(decoder);
}

void Decoder::Start(std::string_view filename, const Messages *messages, const Survey &survey, std::uint64_t block) {
	const auto *const beside = messages ? messages->handle.get() : nullptr;
	Check(evtx_decoder_start(handle.get(), filename.data(), filename.size(), beside, survey.handle.get(), block));
}

std::uintptr_t Decoder::Decode(const std::uint8_t *data, std::uintptr_t len, Interrupt &interrupt) {
	std::uintptr_t consumed = 0;
	const auto error = TakeError(evtx_decoder_decode(handle.get(), data, len, interrupt.ForCore(), &consumed));
	interrupt.Check();
	if (error) {
		throw duckdb::cxx::InvalidInputException(*error);
	}
	return consumed;
}

bool Decoder::Flush(Array &array) {
	std::uintptr_t rows = 0;
	Check(evtx_decoder_flush(handle.get(), &array, &rows));
	return rows > 0;
}

bool Decoder::IsDone() const {
	bool is_done = false;
	Check(evtx_decoder_is_done(handle.get(), &is_done));
	return is_done;
}

void Decoder::ReportFile(std::string_view filename, std::string_view what) {
	Check(evtx_decoder_report_file(handle.get(), filename.data(), filename.size(), what.data(), what.size()));
}

} // namespace evtx
