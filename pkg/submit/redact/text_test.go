package redact

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// What container runtimes and kubelets report about tokens has none; a token in such a sentence is hidden all the same.
func TestSentencesAboutTokens(t *testing.T) {
	for text, want := range map[string]string{
		"failed to fetch oauth token: unexpected status from GET request to https://registry.example.com/token: 401 Unauthorized": "",
		`failed to fetch token: "trainer" not found`: "",
		"failed to use token: hf_x7k2pQ9":            "failed to use token: " + Hidden,
		"token: secret":                              "token: " + Hidden,
		"fetch token=secret":                         "fetch token=" + Hidden,
		"the password: secret":                       "the password: " + Hidden,
	} {
		if want == "" {
			want = text
		}
		if got := Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

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
		want := withoutAssigned(text)
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
