package collect

import (
	"fmt"
	"reflect"
	goruntime "runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot/page"
)

// worker is a pod of another job that runs well, with what API servers and kubelets put on each.
func worker() *corev1.Pod {
	at := metav1.Unix(1000, 0)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "job-worker-0", Labels: map[string]string{"job-name": "job"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		Annotations: map[string]string{lastApplied: "{}", "k8s.v1.cni.cncf.io/network-status": "[]", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
			"scheduling.k8s.io/group-name": "job"}}}
	p.Spec = corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "i", Args: []string{"--x"}, Env: []corev1.EnvVar{{Name: "A", Value: "secret"}},
		Ports: []corev1.ContainerPort{{HostPort: 80}}}}}
	p.Spec.Volumes = []corev1.Volume{
		{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}, {Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &at, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady, Status: corev1.ConditionFalse}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "c", ContainerID: "id", RestartCount: 2, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}}}}
	return p
}

func decodePod(t *testing.T, o Options, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	decode, err := readPods(o)
	if err != nil {
		t.Fatal(err)
	}
	data, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	obj, err := decode(page.Item{Raw: data, Protobuf: true})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := obj.(*corev1.Pod)
	return got
}

func TestCompactPodsAreSmall(t *testing.T) {
	want := worker()
	want.ManagedFields = nil
	want.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "scheduling.k8s.io/group-name": "job"}
	want.Spec.Containers[0].Args, want.Spec.Containers[0].Env, want.Spec.Volumes = nil, nil, want.Spec.Volumes[2:]
	want.Status.PodIP, want.Status.Conditions = "", want.Status.Conditions[1:]
	s := &want.Status.ContainerStatuses[0]
	s.ContainerID, s.State.Running.StartedAt = "", metav1.Time{}
	if got := decodePod(t, Options{Namespace: "team", Name: "llama"}, worker()); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// members are encoded pods of one job: what differs in them is their names, indexes, uids and nodes.
func members(t testing.TB, n int) [][]byte {
	t.Helper()
	all := make([][]byte, n)
	for i := range all {
		p := worker()
		p.Name, p.UID, p.ResourceVersion = fmt.Sprintf("job-worker-%d", i), types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), strconv.Itoa(1000000+i)
		p.Labels["index"], p.Spec.NodeName = strconv.Itoa(i), fmt.Sprintf("n%d", i%100)
		data, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		all[i] = data
	}
	return all
}

// decodeAll decodes pods as a collection does, and returns them.
func decodeAll(t testing.TB, encoded [][]byte) []runtime.Object {
	t.Helper()
	decode, err := readPods(Options{Namespace: "team", Name: "llama"})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]runtime.Object, len(encoded))
	var buf []byte // decoding changes what it reads, and a page is read into one buffer, too
	for i, raw := range encoded {
		buf = append(buf[:0], raw...)
		if all[i], err = decode(page.Item{Raw: buf, Protobuf: true}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// A pod of another job stays within the bytes that a snapshot of 50,000 is planned with: most of them are the type, the rest the labels and the
// names. It is counted, not timed, so that the figure is that of any machine.
func TestBytesOfAPod(t *testing.T) {
	const n, most = 10000, 1900
	encoded := members(t, n)
	var before, after goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&before)
	all := decodeAll(t, encoded)
	goruntime.GC()
	goruntime.ReadMemStats(&after)
	goruntime.KeepAlive(encoded)
	goruntime.KeepAlive(all)
	if each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / n; each > most {
		t.Errorf("a pod takes %d bytes, more than %d", each, most)
	} else {
		t.Logf("a pod takes %d bytes", each)
	}
}

// BenchmarkPods decodes the pods of a job; an operation is one pod.
func BenchmarkPods(b *testing.B) {
	encoded := members(b, b.N)
	b.ReportAllocs()
	b.ResetTimer()
	decodeAll(b, encoded)
}

// Of pods about which there is something to explain all that an explanation may need is kept.
func TestOtherPodsAreWhole(t *testing.T) {
	now := metav1.NewTime(time.Unix(5000, 0))
	tests := []struct {
		name  string
		query Options
		edit  func(*corev1.Pod)
		small bool
	}{
		{"of another job", Options{Namespace: "other", Name: "llama"}, func(*corev1.Pod) {}, true},
		{"of the job", Options{Namespace: "other", Name: "job"}, func(*corev1.Pod) {}, false},
		{"of a job called the same", Options{Namespace: "team", Name: "job"}, func(*corev1.Pod) {}, true},
		{"of the job of a pod", Options{Namespace: "other", Kind: "pod", Name: "job-worker-7"}, func(*corev1.Pod) {}, false},
		{"all are queried", Options{}, func(*corev1.Pod) {}, true},
		{"has ended well", Options{Namespace: "team", Name: "llama"}, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, true},
		{"has failed", Options{Namespace: "team", Name: "llama"}, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
		{"waits", Options{Namespace: "team", Name: "llama"}, func(p *corev1.Pod) { p.Status.Phase, p.Spec.NodeName = corev1.PodPending, "" }, false},
		{"is being deleted", Options{Namespace: "team", Name: "llama"}, func(p *corev1.Pod) { p.DeletionTimestamp = &now }, false},
		{"a container waits", Options{Namespace: "team", Name: "llama"}, func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := worker()
			tt.edit(p)
			got := decodePod(t, tt.query, p)
			if small := len(got.Spec.Volumes) == 1; small != tt.small {
				t.Errorf("is small: %t, want %t", small, tt.small)
			}
			if c := got.Spec.Containers[0]; c.Env != nil || len(c.Ports) != 1 || got.ManagedFields != nil || got.Annotations[lastApplied] != "" {
				t.Errorf("got %+v", got)
			}
			if !tt.small && len(got.Status.Conditions) != 3 {
				t.Errorf("conditions: %+v", got.Status.Conditions)
			}
		})
	}
}

// The numbers of the sources of volumes, and of fields, are those of the generated code.
func TestNumbersOfPods(t *testing.T) {
	sources := map[string]bool{"hostPath": true, "emptyDir": true, "gitRepo": true, "secret": true, "downwardAPI": true, "configMap": true, "projected": true}
	of := reflect.TypeFor[corev1.VolumeSource]()
	for i := range of.NumField() {
		v := corev1.Volume{Name: "v"}
		field := reflect.ValueOf(&v.VolumeSource).Elem().Field(i)
		field.Set(reflect.New(field.Type().Elem()))
		data, err := v.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		name := of.Field(i).Tag.Get("json")
		name = name[:slices.Index([]byte(name), ',')]
		if got := !needsNode(data); got != sources[name] {
			t.Errorf("%s can be had anywhere: %t, want %t", name, got, sources[name])
		}
	}
	if decoded := decodePod(t, Options{Namespace: "team"}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}, Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}); decoded.Spec.NodeName != "n" {
		t.Errorf("got %+v", decoded)
	}
}
