#include "core.hpp"

#include "duckdb_cpp.hpp"
#include "duckdb_v2.h"

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

} // namespace

EvtxOnError ParseOnError(std::string_view name) {
	EvtxOnError on_error {};
	if (auto choices = TakeError(evtx_on_error(name.data(), name.size(), &on_error))) {
		throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_QUERY_BINDER, *choices);
	}
	return on_error;
}

void GetTableSchema(const EvtxOptions &options, Schema &schema) {
	Check(evtx_schema(options, &schema));
}

Filter::Filter(const EvtxOptions &options) {
	EvtxFilter *filter = nullptr;
	Check(evtx_filter_new(options, &filter));
	handle.reset(filter);
}

bool Filter::Test(std::uintptr_t column, const std::optional<std::string> &key, EvtxTest test,
                  const std::vector<EvtxLiteral> &literals) {
	return evtx_filter_test(handle.get(), column, key ? key->data() : nullptr, key ? key->size() : 0, test,
	                        literals.data(), literals.size());
}

void Filter::Combine(EvtxLogic logic, std::uintptr_t count) {
	evtx_filter_combine(handle.get(), logic, count);
}

void Filter::Finish(bool accept) {
	evtx_filter_finish(handle.get(), accept);
}

bool Filter::DropsFile(std::string_view filename) const {
	return evtx_filter_drops_file(handle.get(), filename.data(), filename.size());
}

Scan::Scan(const EvtxOptions &options, const std::vector<std::uintptr_t> &columns, const Filter &filter) {
	EvtxScan *scan = nullptr;
	Check(evtx_scan_new(options, columns.data(), columns.size(), filter.handle.get(), &scan));
	handle.reset(scan);
}

void Scan::GetSchema(Schema &schema) const {
	Check(evtx_scan_schema(handle.get(), &schema));
}

bool Scan::ReadsMessages() const {
	return evtx_scan_reads_messages(handle.get());
}

Survey::Survey(std::uint64_t file_size, bool remote, bool recover) {
	EvtxSurvey *survey = nullptr;
	Check(evtx_survey_new(file_size, remote, recover, &survey));
	handle.reset(survey);
}

std::optional<Survey::Range> Survey::Wants() const {
	Range range {};
	if (!evtx_survey_wants(handle.get(), &range.offset, &range.len)) {
		return std::nullopt;
	}
	return range;
}

std::optional<std::string> Survey::Push(const std::vector<std::uint8_t> &bytes) {
	return TakeError(evtx_survey_push(handle.get(), bytes.data(), bytes.size()));
}

std::optional<std::string> Survey::Verify() const {
	return TakeError(evtx_survey_verify(handle.get()));
}

std::uint64_t Survey::BlockCount() const {
	return evtx_survey_blocks(handle.get());
}

EvtxBlock Survey::GetBlock(std::uint64_t number) const {
	EvtxBlock block {};
	evtx_survey_block(handle.get(), number, &block);
	return block;
}

std::shared_ptr<const Messages> Messages::Read(const std::vector<std::uint8_t> &file) {
	EvtxMessages *messages = nullptr;
	if (TakeError(evtx_messages_new(file.data(), file.size(), &messages))) {
		return nullptr;
	}
	auto result = std::make_shared<Messages>();
	result->handle.reset(messages);
	return result;
}

std::optional<std::string> Messages::GetPattern(std::string_view log, std::string_view place) {
	const auto write = [&](char *out, std::size_t capacity) {
		return evtx_messages_pattern(log.data(), log.size(), place.data(), place.size(), out, capacity);
	};
	std::string pattern(write(nullptr, 0), '\0');
	if (pattern.empty()) {
		return std::nullopt;
	}
	write(pattern.data(), pattern.size() + 1);
	return pattern;
}

Decoder::Decoder(const Scan &scan) {
	EvtxDecoder *decoder = nullptr;
	Check(evtx_decoder_new(scan.handle.get(), &decoder));
	handle.reset(decoder);
}

void Decoder::Start(std::string_view filename, const Messages *messages, const EvtxBlock &block) {
	const auto *const beside = messages ? messages->handle.get() : nullptr;
	Check(evtx_decoder_start(handle.get(), filename.data(), filename.size(), beside, block));
}

std::uintptr_t Decoder::Decode(const std::uint8_t *data, std::uintptr_t len) {
	std::uintptr_t consumed = 0;
	Check(evtx_decoder_decode(handle.get(), data, len, &consumed));
	return consumed;
}

bool Decoder::Flush(Array &array) {
	std::uintptr_t rows = 0;
	Check(evtx_decoder_flush(handle.get(), &array, &rows));
	return rows > 0;
}

bool Decoder::IsDone() const {
	return evtx_decoder_is_done(handle.get());
}

void Decoder::ReportFile(std::string_view filename, std::string_view what) {
	Check(evtx_decoder_report_file(handle.get(), filename.data(), filename.size(), what.data(), what.size()));
}

} // namespace evtx
