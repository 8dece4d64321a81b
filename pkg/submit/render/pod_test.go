package render

import (
	"strings"
	"testing"
	"testing/quick"
)

// kubelet expands an argument as the kubelet does, where HOME is the only variable: it replaces $(HOME), and takes $$ for an escaped dollar
// sign.
func kubelet(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "$$"):
			b.WriteByte('$')
			i++
		case strings.HasPrefix(s[i:], "$(HOME)"):
			b.WriteString("/root")
			i += len("$(HOME)") - 1
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func TestLiteral(t *testing.T) {
	for _, arg := range []string{"", "$", "$$", "$$$", "$HOME", "$(HOME)", "$$(HOME)", "a$(b", "100%", "echo $$; $(HOME)$", "é$(HOME)"} {
		if got := kubelet(Literal(arg)); got != arg {
			t.Errorf("%q arrives as %q", arg, got)
		}
	}
	if got := Literal("$HOME"); got != "$HOME" {
		t.Errorf("$HOME needs no protection, got %q", got)
	}
	alphabet := []string{"$", "$", "(", ")", "HOME", "x", " "}
	arrives := func(choices []byte) bool {
		var b strings.Builder
		for _, c := range choices {
			b.WriteString(alphabet[int(c)%len(alphabet)])
		}
		return kubelet(Literal(b.String())) == b.String()
	}
	if err := quick.Check(arrives, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}
