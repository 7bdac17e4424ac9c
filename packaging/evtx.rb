# A formula for a tap of Homebrew: the command `evtx` is DuckDB's command line with the extension loaded. tools/release.py fills in the marks.
class Evtx < Formula
  desc "Query Windows event logs with SQL, in DuckDB's command line"
  homepage "{{URL}}"
  version "{{VERSION}}"
  license "MIT"
  depends_on "duckdb"

  on_macos do
    on_arm do
      url "{{URL}}/releases/download/v{{VERSION}}/evtx.osx_arm64.duckdb_extension.gz"
      sha256 "{{evtx.osx_arm64.duckdb_extension.gz}}"
    end
    on_intel do
      url "{{URL}}/releases/download/v{{VERSION}}/evtx.osx_amd64.duckdb_extension.gz"
      sha256 "{{evtx.osx_amd64.duckdb_extension.gz}}"
    end
  end
  on_linux do
    on_arm do
      url "{{URL}}/releases/download/v{{VERSION}}/evtx.linux_arm64.duckdb_extension.gz"
      sha256 "{{evtx.linux_arm64.duckdb_extension.gz}}"
    end
    on_intel do
      url "{{URL}}/releases/download/v{{VERSION}}/evtx.linux_amd64.duckdb_extension.gz"
      sha256 "{{evtx.linux_amd64.duckdb_extension.gz}}"
    end
  end

  # Homebrew has unpacked the file.
  def install
    libexec.install Dir["evtx*"].first => "evtx.duckdb_extension"
    (bin/"evtx").write <<~SH
      #!/bin/sh
      exec "#{Formula["duckdb"].opt_bin}/duckdb" -unsigned -cmd "LOAD '#{libexec}/evtx.duckdb_extension'" "$@"
    SH
  end

  test do
    assert_match "TCP", shell_output("#{bin}/evtx -c \"SELECT evtx_code_name('protocol', 6)\"")
  end
end
