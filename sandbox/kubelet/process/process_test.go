package process

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func testPod(images ...string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"},
		Spec:       corev1.PodSpec{NodeName: "node-1", ServiceAccountName: "account"},
	}
	for _, image := range images {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "c", Image: image})
	}
	return p
}

// cluster has objects, and gives a token to the service account.
func cluster(objects ...runtime.Object) kubernetes.Interface {
	client := fake.NewClientset(objects...)
	client.PrependReactor("create", "serviceaccounts", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "token" || a.GetNamespace() != "ns" || a.(clienttesting.CreateActionImpl).Name != "account" {
			return false, nil, nil
		}
		request := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenRequest).DeepCopy()
		if request.Spec.BoundObjectRef == nil || request.Spec.BoundObjectRef.UID != "u" {
			return true, nil, errors.New("the token is not bound to the pod")
		}
		request.Status.Token = "secret"
		return true, request, nil
	})
	return client
}

func TestRuns(t *testing.T) {
	r := &Runner{Image: "gangctl"}
	for image, want := range map[string]bool{
		"gangctl": true, "gangctl:v1": true, "example.com:5000/ml/gangctl@sha256:0": true, "x/gangctl:v1@sha256:0": true,
		"gangctl-operator": false, "mygangctl": false, "gangctl/other": false, "": false,
	} {
		if got := r.Runs(testPod(image)); got != want {
			t.Errorf("%q: got %v", image, got)
		}
	}
	var none *Runner
	if _, ok := none.LogFile(testPod("gangctl"), false); ok || r.Runs(testPod()) {
		t.Error("pods are taken that are not ours")
	}
}

// A container's configuration reaches the process: its variables, its files, its arguments.
func TestPrepare(t *testing.T) {
	p := testPod("gangctl")
	c := &p.Spec.Containers[0]
	c.Command, c.Args = []string{"/gangctl"}, []string{"scheduler", "--config=/etc/x/a.yaml", "--secure-port=10259", "--name=$(NS)", "--keep=$(OTHER)"}
	c.Env = []corev1.EnvVar{
		{Name: "NS", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}, {Name: "A", Value: "in $(NS)"},
	}
	c.Ports = []corev1.ContainerPort{{ContainerPort: 10259}}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/etc/x"}, {Name: "token", MountPath: serviceAccountPath}}
	p.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "m"}}}}}
	client := cluster(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}, Data: map[string]string{
		"a.yaml": "kind: KubeSchedulerConfiguration\nclientConnection: {qps: 5}\n", "b.txt": "as it is"}})
	dir := t.TempDir()
	r := &Runner{Client: client, Image: "gangctl", Program: "/bin/true", Dir: dir, Server: "https://127.0.0.1:1", CA: "/ca"}
	got, err := (&pod{runner: r, spec: p, dir: r.dir(p)}).prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, config := filepath.Join(r.dir(p), "kubeconfig"), filepath.Join(r.dir(p), "volumes", "config", "a.yaml")
	want := []string{"scheduler", "--config=" + config, "--secure-port=" + strconv.Itoa(got.ports[10259]), "--name=ns", "--keep=$(OTHER)",
		"--bind-address=127.0.0.1", "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig}
	if !slices.Equal(got.args, want) || got.ports[10259] == 0 {
		t.Errorf("arguments: %q\nwant %q", got.args, want)
	}
	if !slices.Contains(got.env, "A=in ns") || !slices.Contains(got.env, "KUBECONFIG="+kubeconfig) || slices.ContainsFunc(got.env, func(e string) bool { return strings.HasPrefix(e, "GOPATH") }) {
		t.Errorf("environment: %q", got.env)
	}
	for file, part := range map[string]string{config: "kubeconfig: " + kubeconfig, filepath.Join(filepath.Dir(config), "b.txt"): "as it is", kubeconfig: "token: secret"} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), part) {
			t.Errorf("%s: %v\n%s", file, err, text)
		}
	}
}

// What a process cannot have is refused, not left out.
func TestPrepareRefuses(t *testing.T) {
	for want, change := range map[string]func(*corev1.Pod){
		"this one has 2": func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{}) },
		"variable A": func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{}}}}
		},
		"volume v: the sandbox mounts": func(p *corev1.Pod) {
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}}}
		},
		"get ConfigMap m": func(p *corev1.Pod) {
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "m"}}}}}
		},
	} {
		p := testPod("gangctl")
		change(p)
		r := &Runner{Client: cluster(), Dir: t.TempDir()}
		if _, err := (&pod{runner: r, spec: p, dir: r.dir(p)}).prepare(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestTally(t *testing.T) {
	bad, probe := errors.New("bad"), &corev1.Probe{FailureThreshold: 2}
	var all tally
	for i, step := range []struct {
		answer     error
		change, ok bool
	}{{bad, false, false}, {nil, true, true}, {bad, false, true}, {nil, false, true}, {bad, false, true}, {bad, true, false}, {nil, true, true}} {
		if change, ok := all.count(step.answer, probe); change != step.change || ok != step.ok {
			t.Errorf("step %d: got %v, %v", i, change, ok)
		}
	}
}

// A container is ready once its probe succeeds, and dead when its probe gets no answer any more.
func TestWatch(t *testing.T) {
	answers := make(chan int, 100)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/livez" {
			w.WriteHeader(<-answers)
		}
	}))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{FailureThreshold: 2, PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("https"), Scheme: corev1.URISchemeHTTPS}}}
	}
	c := &container{ports: map[int32]int{1: port}, spec: &corev1.Container{
		Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: 1}}, ReadinessProbe: probe("/readyz"), LivenessProbe: probe("/livez"), StartupProbe: probe("/livez"),
	}}
	for _, code := range []int{200, 200, 500, 500} {
		answers <- code
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var ready []bool
	dead := 0
	c.watch(ctx, func(now bool) { ready = append(ready, now) }, func() { dead++ })
	if dead != 1 || !slices.Equal(ready, []bool{true}) || len(answers) != 0 {
		t.Errorf("ready: %v, dead: %d, %d answers are left", ready, dead, len(answers))
	}
}
