package localfile

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// endless is a file that has no end; read is how much of it was.
type endless struct {
	fill byte
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.fill
	}
	e.read += len(p)
	return len(p), nil
}

func packed(t *testing.T, text []byte) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// A pipe into which nothing is written keeps nobody waiting who interrupts.
func TestOpenUntil(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OpenUntil(ctx, path, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("open: got %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	from, to := io.Pipe()
	in, err := OpenUntil(ctx, Stdin, from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	go func() {
		_, _ = to.Write([]byte("a: b")) // nothing is read of it once the test has failed
		cancel()
	}()
	data, err := io.ReadAll(in)
	if string(data) != "a: b" && len(data) > 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("read: got %q, %v", data, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("a: b"), 0o600); err != nil {
		t.Fatal(err)
	}
	plain, err := OpenUntil(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if data, err := io.ReadAll(plain); err != nil || string(data) != "a: b" {
		t.Errorf("file: got %q, %v", data, err)
	}
}

func TestText(t *testing.T) {
	const limit = 1 << 20
	for name, tt := range map[string]struct {
		in         io.Reader
		want, fail string
	}{
		"text":                   {in: strings.NewReader("a: b"), want: "a: b"},
		"nothing":                {in: strings.NewReader("")},
		"compressed":             {in: packed(t, []byte("a: b")), want: "a: b"},
		"as large as it may be":  {in: strings.NewReader(strings.Repeat("x", limit)), want: strings.Repeat("x", limit)},
		"too large":              {in: strings.NewReader(strings.Repeat("x", limit+1)), fail: "it has more than 1 MiB"},
		"too large decompressed": {in: packed(t, bytes.Repeat([]byte("x"), 8*limit)), fail: "it has more than 1 MiB"},
		"no text":                {in: strings.NewReader("\x7fELF\x00"), fail: "it is not text in UTF-8: it holds a zero byte"},
		"no text, compressed":    {in: packed(t, make([]byte, 8*limit)), fail: "it is not text in UTF-8: it holds a zero byte"},
		"cut off":                {in: bytes.NewReader(packed(t, []byte("a: b")).Bytes()[:14]), fail: "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Text(tt.in, limit)
			if string(got) != tt.want || (err == nil) != (tt.fail == "") || err != nil && err.Error() != tt.fail {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
		})
	}
}

// What has no end is not read to see that it has none: a device shows at once, and anything else at the limit.
func TestEndless(t *testing.T) {
	const limit = 1 << 20
	for fill, most := range map[byte]int{0: 64 << 10, 'x': 2 * limit} {
		in := &endless{fill: fill}
		if _, err := Text(in, limit); err == nil || in.read > most {
			t.Errorf("of bytes %d %d were read: %v", fill, in.read, err)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, nil); err == nil || err.Error() != "read "+dir+": is a directory" {
		t.Errorf("a directory: got %v", err)
	}
	if in, err := Open(Stdin, strings.NewReader("x")); err != nil || Name(Stdin) != "standard input" {
		t.Errorf("standard input: got %v, %v", in, err)
	}
}

// Only a regular file is replaced, and only where that is meant. What is written through keeps being what it is.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	regular, link, pipe := filepath.Join(dir, "regular"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	dangling, target := filepath.Join(dir, "dangling"), filepath.Join(dir, "target")
	if err := errors.Join(os.WriteFile(regular, []byte("before"), 0o600), os.Symlink(regular, link), os.Symlink(target, dangling)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{regular: true, filepath.Join(dir, "absent"): true, link: false, pipe: false, dir: false, os.DevNull: false} {
		if got, err := replaceable(path); err != nil || got != want {
			t.Errorf("%s: got %t, %v", path, got, err)
		}
	}
	write := func(out io.Writer) error {
		_, err := io.WriteString(out, "after")
		return err
	}
	for _, path := range []string{regular, link} {
		free, err := Free(path), Write(path, false, write)
		if text, read := os.ReadFile(path); !errors.Is(free, ErrTaken) || !errors.Is(err, ErrTaken) || err.Error() != path+" is there already" || read != nil || string(text) != "before" {
			t.Errorf("%s: got %v, %v, %s", path, free, err, text)
		}
	}
	for path, overwrite := range map[string]bool{link: true, os.DevNull: false, dangling: false, filepath.Join(dir, "absent"): false} {
		if err := Write(path, overwrite, write); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for path, linked := range map[string]string{link: regular, dangling: target} {
		text, err := os.ReadFile(linked)
		if info, failed := os.Lstat(path); err != nil || failed != nil || string(text) != "after" || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s: got %s, %v, %v", path, text, err, failed)
		}
	}
	if err := Write(dir, true, write); err == nil {
		t.Error("a directory is no file")
	}
}

// A file that cannot be written, or has appeared meanwhile, leaves nothing behind.
func TestWriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	failed := errors.New("no space")
	if err := Write(path, true, func(io.Writer) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	err := Write(path, false, func(io.Writer) error { return os.WriteFile(path, []byte("another's"), 0o600) })
	if text, read := os.ReadFile(path); !errors.Is(err, ErrTaken) || read != nil || string(text) != "another's" {
		t.Errorf("got %v, %s", err, text)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if err := Write(filepath.Join(dir, "absent", "file"), false, func(io.Writer) error { return nil }); err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, "absent", "file")+": ") {
		t.Errorf("got %v", err)
	}
}
