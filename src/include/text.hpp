#pragma once

#include <algorithm>
#include <cctype>
#include <string_view>

namespace evtx {

//! Whether two names are the same to SQL, which does not look at the case of ASCII letters.
inline bool EqualNames(std::string_view a, std::string_view b) {
	return std::equal(a.begin(), a.end(), b.begin(), b.end(),
	                  [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

} // namespace evtx
