package submit

import (
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// inGang is a job whose pods are in the gang g.
func inGang(name string) string {
	return strings.Replace(strings.Replace(jobFile, "llama", name, 1), "        spec:\n", "        metadata: {labels: {scheduling.x-k8s.io/pod-group: g}}\n        spec:\n", 1)
}

// What a file or the flags with it cannot mean is refused before anything is sent.
func TestFileRefusals(t *testing.T) {
	with := func(from, to string) string {
		if !strings.Contains(jobFile, from) {
			t.Fatalf("no %q in the file", from)
		}
		return strings.Replace(jobFile, from, to, 1)
	}
	tests := map[string]struct {
		text, line string // FILE in the line is the path of the text
		code       failure.Code
		message    string
		hint       string
	}{
		"workers":             {jobFile, "submit tf -f FILE --workers 3", 2, "--workers has no effect with -f: the file defines the job", "change the file, or leave out --workers"},
		"several flags":       {jobFile, "submit tf -f FILE --gpus 1 --image i", 2, "--image has no effect with -f", "leave out --image and --gpus"},
		"a name":              {jobFile, "submit tf -f FILE bert", 2, `"bert" has no effect with -f: the name of the job is in the file`, "leave it out"},
		"--name":              {jobFile, "submit tf -f FILE --name bert", 2, "--name has no effect with -f", ""},
		"a command":           {jobFile, "submit tf -f FILE -- python x.py", 2, `"python" has no effect with -f: the command of the job is in the file`, ""},
		"a kind":              {jobFile, "submit -f FILE bert", 2, `"bert" has no effect with -f`, ""},
		"another kind named":  {jobFile, "submit pytorch -f FILE", 2, "FILE holds a TFJob, not a PyTorchJob", "gangctl submit -f"},
		"an empty path":       {jobFile, "submit --filename=", 2, "--filename is empty", "standard input"},
		"no such file":        {"", "submit -f /absent/job.yaml", 1, "read the job: open /absent/job.yaml: no such file or directory", ""},
		"an address":          {"", "submit -f https://example.com/job.yaml", 1, "read the job: open https://example.com/job.yaml: no such file or directory", "addresses are not read: curl -fsSL https://example.com/job.yaml | gangctl submit -f -"},
		"a directory":         {"", "submit -f .", 1, "read the job: read .: is a directory", "name a file"},
		"no text":             {"", "submit -f /dev/zero", 1, "read the job from /dev/zero: it is not text", "a job is YAML or JSON"},
		"no template":         {"", "submit tf --template /dev/zero", 1, "read the template: /dev/zero: it is not text", "templates list"},
		"a template, twice":   {"", "submit tf --template -", 2, "--template -: a template is not read from standard input", "-f -"},
		"no end":              {"", "submit tf --image i --config-file /dev/zero:/x --dry-run=client", 2, `--config-file "/dev/zero:/x": it has more than`, "--data CLAIM:/PATH"},
		"a directory to give": {"", "submit tf --image i --config-file .:/x --dry-run=client", 2, `--config-file ".:/x": is a directory`, "--data CLAIM:/PATH"},
		"twice a file":        {jobFile, "submit -f FILE -f x -f FILE", 2, "--filename FILE is there twice", "name each file once"},
		"long for a JobSet":   {"apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: " + strings.Repeat("a", 49) + "}\nspec: {replicatedJobs: [{name: node, replicas: 2, template: {spec: {template: {spec: {schedulerName: gang, containers: [{name: main, image: i}]}}}}}]}\n", "submit -f FILE --dry-run=client", 1, strings.Repeat("a", 49) + "-node-1-0-abcde would have 64 characters", "shorten"},
		"twice stdin":         {"", "submit -f - --from - --dry-run=fit", 2, "-f - and --from - both read standard input", ""},
		"namespace":           {with("{name: llama}", "{name: llama, namespace: ml}"), "submit -f FILE -n other", 2, "--namespace other contradicts FILE, whose TFJob is in namespace ml", "leave out --namespace"},
		"group elsewhere":     {jobFile + strings.Replace(groupFile, "{name: mine}", "{name: mine, namespace: ml}", 1), "submit -f FILE", 1, "FILE: PodGroup mine is in namespace ml, but its TFJob in research", ""},
		"group without name":  {jobFile + strings.Replace(groupFile, "{name: mine}", "{generateName: mine-}", 1), "submit -f FILE", 1, "FILE: the PodGroup has no metadata.name", ""},
		"bad name":            {with("{name: llama}", "{name: 1llama}"), "submit -f FILE", 1, `FILE: TFJob research/1llama: name "1llama": must start with a lower-case letter`, ""},
		"long name":           {with("{name: llama}", "{name: "+strings.Repeat("a", 60)+"}"), "submit -f FILE", 1, "is too long: the pod and service", "shorten the name"},
		"no container":        {with("name: tensorflow", "name: main"), "submit -f FILE", 1, "FILE: TFJob research/llama: there is no container named tensorflow in Worker (it has main)", ""},
		"no such role":        {with("Worker:", "Wroker:"), "submit -f FILE", 1, "spec.tfReplicaSpecs.Wroker: not a role of a TFJob: must be one of Chief, Master, PS, Worker, Evaluator", "did you mean Worker?"},
		"no members":          {with("replicas: 2", "replicas: 0"), "submit -f FILE", 1, "it has no members", ""},
		"negative":            {with("replicas: 2", "replicas: -1"), "submit -f FILE", 1, "spec.tfReplicaSpecs.Worker.replicas: -1: must be 0 or more", ""},
		"negative request":    {with("nvidia.com/gpu: 8", "nvidia.com/gpu: -1"), "submit -f FILE", 1, "spec.tfReplicaSpecs.Worker.template.spec.containers[0].resources.limits.nvidia.com/gpu: -1: must be 0 or more", ""},
		"second is broken":    {jobFile + "---\nkind: [\n", "submit -f FILE", 1, "FILE: document 2, line 12: invalid YAML", ""},
		"no job":              {"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n", "submit -f FILE", 1, "FILE: the file holds no job, but Secret a", "gangctl submits TFJobs, PyTorchJobs, MPIJobs, XGBoostJobs, PaddleJobs and JAXJobs of kubeflow.org"},
		"of another kind":     {jobFile, "submit pytorch -f FILE", 2, "FILE holds a TFJob, not a PyTorchJob", "leave out the kind"},
		"first version":       {with("kubeflow.org/v1", "kubeflow.org/v1alpha1"), "submit -f FILE", 1, "FILE: document 1, line 1: TFJob llama: kubeflow.org/v1alpha1 cannot be converted", ""},
		"the same twice":      {jobFile + "---\n" + jobFile, "submit -f FILE", 1, "FILE: it holds TFJob research/llama twice", ""},
		"two in one gang":     {inGang("a") + "---\n" + inGang("b"), "submit -f FILE", 1, "FILE: the pods of TFJob a and of TFJob b are in one gang, g: each job is a gang of its own", ""},
		"group without a job": {jobFile + "---\n" + with("llama", "bert") + groupFile, "submit -f FILE", 1, "FILE: PodGroup mine is of none of the jobs: none has its name, and no pods name it", ""},
		"two groups":          {jobFile + groupFile + groupFile, "submit -f FILE", 1, "FILE: TFJob research/llama has two PodGroups, mine and mine", ""},
		"the second is not":   {jobFile + "---\n" + strings.Replace(with("llama", "bert"), "        spec:\n", "        spec:\n          schedulerName: default-scheduler\n", 1), "submit -f FILE", 1, "FILE: TFJob research/bert: its members request scheduler default-scheduler", "--dialect none"},
		"besides, elsewhere":  {jobFile + strings.Replace(settingsFile, "{name: settings}", "{name: settings, namespace: ml}", 1), "submit -f FILE -n other", 2, "--namespace other contradicts FILE, whose ConfigMap is in namespace ml", "leave out --namespace"},
		"besides, nowhere":    {jobFile + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: b}\n", "submit -f FILE", 1, "FILE: Namespace a has a namespace, which its kind has not", ""},
		"default scheduler":   {with("        spec:\n", "        spec:\n          schedulerName: default-scheduler\n"), "submit -f FILE", 1, "FILE: its members request scheduler default-scheduler: no scheduler would start its members together", "--dialect none"},
		"contradiction":       {with("        spec:\n", "        spec:\n          schedulerName: gang\n"), "submit -f FILE --scheduler mine", 2, "FILE: --scheduler contradicts the file: its members request scheduler gang", "leave out --scheduler, or change the file"},
		"too many":            {jobFile, "submit -f FILE --min-available 3", 1, "FILE: its gang needs 3 members, but has 2", ""},
		"minimum of none":     {jobFile, "submit -f FILE --dialect none --min-available 1", 2, "--min-available has no effect with --dialect none", ""},
		"bad scheduler":       {jobFile, "submit -f FILE --scheduler My_One", 2, `--scheduler "My_One": must hold only`, ""},
		"empty scheduler":     {jobFile, "submit -f FILE --scheduler=", 2, "--scheduler is empty", ""},
		"from without fit":    {jobFile, "submit -f FILE --from x", 2, "--from has no effect without --dry-run=fit", ""},
		"wait with fit":       {jobFile, "submit -f FILE --wait --dry-run=fit", 2, "--wait has no effect with --dry-run=fit", ""},
		"name of an answer":   {jobFile, "submit -f FILE --dry-run=fit -o name", 2, "--output name: the answer of --dry-run=fit is not an object", ""},
		"no file, no kind":    {"", "submit --dry-run=client", 2, "submit needs the kind of job, or a file", "gangctl submit -f FILE"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := file(t, tt.text)
			out, _, failed := typeLine(t.Context(), noCluster, "", strings.Fields(strings.ReplaceAll(tt.line, "FILE", path))...)
			if failed == nil || failed.Code != tt.code || !strings.Contains(failed.Message, strings.ReplaceAll(tt.message, "FILE", path)) || !strings.Contains(failed.Hint, tt.hint) {
				t.Errorf("got %+v", failed)
			}
			if out != "" {
				t.Errorf("something was printed: %s", out)
			}
		})
	}
}
