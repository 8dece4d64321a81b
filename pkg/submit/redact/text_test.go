package redact

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// What the expressions would find is found, whatever is looked at first.
func TestTextIsWhatTheExpressionsFind(t *testing.T) {
	parts := []string{"token", "TOKEN", "Passwd", "pass", "word", "phrase", "secret", "ſecret", "api", "key", "Key", "-", "--", "_", "=", ":", " ", "\"", "x", "https", "://", "u", "@", "e.com", ",", "credentials", "\n", "…"}
	r := rand.New(rand.NewPCG(1, 1))
	found := 0
	for range 200_000 {
		var b strings.Builder
		for range 1 + r.IntN(9) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		text := b.String()
		want := assigned.ReplaceAllString(text, "${1}"+Hidden)
		want = following.ReplaceAllString(want, "${1}"+Hidden)
		want = userInfo.ReplaceAllString(want, "${1}"+Hidden+"@")
		if got := Text(text); got != want {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
		if want != text {
			found++
		}
	}
	if found < 1000 {
		t.Errorf("%d texts had one", found)
	}
}
