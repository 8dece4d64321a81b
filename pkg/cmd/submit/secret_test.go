package submit

import (
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// A message about a bad value goes to the logs of pipelines and into issues: what is secret in the value is not in it.
func TestErrorsKeepNoSecrets(t *testing.T) {
	const container = "spec.tfReplicaSpecs.Worker.template.spec.containers[0]"
	bad := string([]byte{'L', 'E', 'A', 'K', 0xff})
	for _, args := range [][]string{
		{"--env", "=LEAK"}, {"--env", "A TOKEN\t=LEAK"}, {"--env", "HF_TOKEN:LEAK"}, {"--env", "TOKEN=" + bad}, {"--env", "A=" + bad},
		{"--annotation", "a/b/api-key=LEAK"}, {"--annotation", "token:LEAK"}, {"--annotation", "token=" + bad}, {"--label", "password=LEAK $"},
		{"--sync-git", "https://ann:LEAK@ho st"}, {"--sync-git", "https://ann:LEAK@host/a"}, {"--sync-git", "https://ann:LEAK@host/a@-x"}, {"--sync-git", "https://LEAK@host/a@"},
		{"--set", container + "x.env[0].value=LEAK"}, {"--set", "spec.x[x].env[0].value=LEAK"}, {"--set", container + "env[0].value=LEAK"},
		{"--set", container + `.env[0]={"name":"A","value":{"LEAK":1}}`}, {"--set", container + `.env=[{"name":"A","value":"LEAK"`}, {"--set", container + ".env=LEAK"},
		{"--set", container + `.env=[{"name":"A","value":"LEAK","x":1}]`}, {"--set", container + ".livenessProbe.httpGet.httpHeaders=token: LEAK"},
		{"--set", "metadata.name.token=LEAK"}, {"--set", container + ".args=[\"--token\",\"LEAK\""},
		{"--config-file", "https://ann:LEAK@host"}, {"--config-file", "https://ann:LEAK@host:/etc/x"},
		{"--template", "testdata/none.yaml", "--env", "=LEAK"},
		{"--", "python", "--token", bad}, {"--", "python", "--token=" + bad},
	} {
		_, _, err := fromTemplate(t, append([]string{"--image", "i"}, args...)...)
		if err == nil {
			t.Errorf("%q is taken", args)
			continue
		}
		e := failure.From(err)
		if shown := e.Message + e.Hint; strings.Contains(shown, "LEAK") {
			t.Errorf("%q: %s", args, shown)
		}
	}
}

// A file, or a template, of which a field has a wrong value.
func TestErrorsOfFilesKeepNoSecrets(t *testing.T) {
	for _, env := range []string{"LEAK", "[{name: A, value: {b: LEAK}}, x]", "{A: LEAK}", "[LEAK]", "{token: LEAK"} {
		text := "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: a}\nspec:\n  tfReplicaSpecs: {Worker: {replicas: 1, template: {spec: {containers: [{name: tensorflow, image: i, env: " + env + "}]}}}}\n"
		for _, args := range [][]string{{"--template", file(t, text)}, {"--template", file(t, text), "--image", "j"}} {
			_, _, err := fromTemplate(t, args...)
			if err == nil || strings.Contains(err.Error(), "LEAK") {
				t.Errorf("%s: %v", env, err)
			}
		}
	}
}
