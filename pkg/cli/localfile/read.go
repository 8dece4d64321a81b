// Package localfile reads the files that users name, and writes them. Whatever a name stands for, reading ends: a device has no end, and a
// kilobyte of gzip can become a megabyte.
package localfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// Open opens a file to be read; "-" is in, which is not closed. A directory is an error. A named pipe waits for who writes into it.
func Open(path string, in io.Reader) (io.ReadCloser, error) {
	if path == Stdin {
		return io.NopCloser(in), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// OpenUntil is Open for what may keep a user waiting: opening and reading standard input, or what is no regular file, end with ctx.
func OpenUntil(ctx context.Context, path string, in io.Reader) (io.ReadCloser, error) {
	if info, err := os.Stat(path); path != Stdin && (err != nil || info.Mode().IsRegular()) {
		return Open(path, in)
	}
	type opened struct {
		from io.ReadCloser
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		from, err := Open(path, in)
		done <- opened{from, err}
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx) // who waits for a writer ends with the program
	case o := <-done:
		if o.err != nil {
			return nil, o.err
		}
		return &interruptible{ReadCloser: o.from, ctx: ctx, buffer: make([]byte, 16*beginning)}, nil
	}
}

// interruptible is a reader that does not wait for longer than a context.
type interruptible struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // a reader has no other way to it
	buffer []byte
}

// Read implements [io.Reader]. A read that is interrupted goes on into the buffer, which nothing reads after that.
func (r *interruptible) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := r.ReadCloser.Read(r.buffer[:min(len(p), len(r.buffer))])
		done <- result{n, err}
	}()
	select {
	case <-r.ctx.Done():
		return 0, context.Cause(r.ctx)
	case got := <-done:
		return copy(p, r.buffer[:got.n]), got.err
	}
}

// Name is a path as messages name it.
func Name(path string) string {
	if path == Stdin {
		return "standard input"
	}
	return path
}

// Bytes reads up to so many bytes. More of them is an error.
func Bytes(in io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("it has more than %d MiB", limit>>20)
	}
	return data, err
}

// beginning is how much of a file shows whether it is text.
const beginning = 4 << 10

// Text is Bytes for YAML and JSON. What is compressed with gzip, whatever its name, is decompressed, and the limit counts for the result.
// What is no text, such as a device or a program, is refused from its beginning.
func Text(in io.Reader, limit int64) ([]byte, error) {
	from := bufio.NewReaderSize(in, beginning)
	if head, _ := from.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(from)
		if err != nil {
			return nil, err
		}
		from = bufio.NewReaderSize(z, beginning)
	}
	head, err := from.Peek(beginning)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return nil, errors.New("it is not text in UTF-8: it holds a zero byte")
	}
	return Bytes(from, limit)
}
