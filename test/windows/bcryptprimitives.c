/* Stands in for a DLL of Windows that Wine 8 lacks. Rust's standard library takes random numbers from it. */
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG size);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {
	return SystemFunction036(data, (ULONG)size);
}
