package supervise

import (
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"
)

// window is how much of the end of a log is looked at, in bytes; a crash of a Go
// program with its goroutines fits in.
const window = 256 << 10

// longest is how long a line of a log may be in a message.
const longest = 300

// crash matches the first line of a crash report of a Go program, klog or cobra.
var crash = regexp.MustCompile(`^(panic: |fatal error: |F\d{4} |[Ee]rror: )`)

// LastLines returns the lines of a log that show what ended its writer: where
// the crash begins, or else the last lines. It is empty if there is no log.
func LastLines(path string, lines int) string {
	all := tail(path)
	for i, line := range all {
		if text, ok := zapCrash(line); ok {
			return text
		}
		if crash.MatchString(line) {
			all = all[i:min(len(all), i+lines)]
			break
		}
	}
	all = all[max(0, len(all)-lines):]
	var out []string
	for _, line := range all {
		if strings.HasPrefix(line, "goroutine ") {
			break
		}
		if len(line) > longest {
			line = line[:longest] + " …"
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// zapCrash reads etcd's crash reports: JSON with a level.
func zapCrash(line string) (string, bool) {
	var entry struct{ Level, Msg, Error string }
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &entry) != nil {
		return "", false
	}
	if entry.Level != "panic" && entry.Level != "fatal" {
		return "", false
	}
	return strings.TrimSuffix(entry.Msg+": "+entry.Error, ": "), true
}

// tail returns the last lines that are not empty.
func tail(path string) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > window {
		if _, err := f.Seek(-window, io.SeekEnd); err != nil {
			return nil
		}
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			out = append(out, line)
		}
	}
	return out
}
