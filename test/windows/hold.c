/* Holds a file open, as another process does, until C:\case\release exists. usage: hold.exe FILE alone|shared */
#include <windows.h>

int main(int count, char **arguments) {
	DWORD sharing = count == 3 && arguments[2][0] == 's' ? FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE : 0;
	if (count != 3) {
		return 2;
	}
	if (CreateFileA(arguments[1], GENERIC_READ | GENERIC_WRITE, sharing, NULL, OPEN_EXISTING, 0, NULL) ==
	    INVALID_HANDLE_VALUE) {
		return 1;
	}
	for (int tenths = 0; tenths < 3000 && GetFileAttributesA("C:\\case\\release") == INVALID_FILE_ATTRIBUTES; tenths++) {
		Sleep(100);
	}
	return 0;
}
