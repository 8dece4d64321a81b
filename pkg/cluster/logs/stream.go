package logs

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// bufferSize is how much of a log is read at once. A thousand logs may be read at the same time.
const bufferSize = 16 << 10

// stream is the answer to one request for a log.
type stream struct {
	body   io.ReadCloser
	reader *bufio.Reader
	// rest is whether the last line may lack its end: that of a log which is complete may, that of one which broke off is half.
	rest bool
}

// open sends the request.
func open(ctx context.Context, client kubernetes.Interface, namespace, pod string, o *corev1.PodLogOptions) (*stream, error) {
	body, err := client.CoreV1().Pods(namespace).GetLogs(pod, o).SetHeader("Accept", "text/plain, */*").Stream(ctx)
	if err != nil {
		return nil, err
	}
	return &stream{body: body, reader: bufio.NewReaderSize(body, bufferSize)}, nil
}

func (s *stream) close() { _ = s.body.Close() } // it was only read from

// next returns the next line. The error is io.EOF at the end of the log.
func (s *stream) next() (stamp string, at time.Time, text string, err error) {
	raw, err := s.line()
	if errors.Is(err, io.EOF) && raw != "" && s.rest {
		err = nil
	}
	if err != nil {
		return "", time.Time{}, "", err
	}
	stamp, at, text = split(strings.TrimSuffix(strings.TrimSuffix(raw, "\n"), "\r"))
	return stamp, at, text, nil
}

// maxLine is how much of a line is kept, in bytes. A program that writes no newlines would otherwise fill the memory.
const maxLine = 1 << 20

// line reads up to the next newline. The rest of a line that is too long is skipped, and an ellipsis stands for it.
func (s *stream) line() (string, error) {
	var b strings.Builder
	for cut := false; ; {
		part, err := s.reader.ReadSlice('\n')
		ends := err == nil
		if room := maxLine - b.Len(); !cut && len(part) > room {
			b.Write(part[:room])
			b.WriteString("…")
			cut = true
		} else if !cut {
			b.Write(part)
		}
		switch {
		case ends && cut:
			return b.String() + "\n", nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return b.String(), err
		}
	}
}

// split takes a line apart that begins with its time. One that does not, which no kubelet writes, has none.
func split(raw string) (stamp string, at time.Time, text string) {
	stamp, text, _ = strings.Cut(raw, " ")
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return "", time.Time{}, raw
	}
	return stamp, at, text
}
