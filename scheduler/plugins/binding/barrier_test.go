package binding

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/gangctl/gangctl/internal/enginetest"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/args"
)

// storage makes volumes as a provisioner does, when a test calls provide.
type storage struct {
	*enginetest.Cluster
	t         *testing.T
	requested chan string
}

// ours is the plugin, as the scheduler enables it.
func ours(handle *engine.Handle, b *Barrier) enginetest.Plugin {
	return enginetest.Plugin{Name: Name, New: handle.Binding(b.NewPlugin), ReplacesPermit: ReplacesPermit}
}

func withArgs(p enginetest.Plugin, args string) enginetest.Plugin {
	p.Args = args
	return p
}

// start runs an engine with a class of volumes that are made for the node that
// was decided on, and with gang a of three, of which a-1 wants such a volume.
func start(t *testing.T, args string) *storage {
	s := &storage{t: t, requested: make(chan string, 100)}
	handle := engine.NewHandle()
	b := New(handle, unparked{})
	s.Cluster = enginetest.Start(t, func(c *enginetest.Cluster) {
		mode := storagev1.VolumeBindingWaitForFirstConsumer
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: "test", VolumeBindingMode: &mode}
		if err := c.Client.Tracker().Add(class); err != nil {
			t.Fatal(err)
		}
		name := "late"
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: enginetest.Namespace, Name: "data", UID: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &name, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
		}
		if err := c.Client.Tracker().Add(claim); err != nil {
			t.Fatal(err)
		}
		var version atomic.Int64
		c.Client.PrependReactor("update", "persistentvolumeclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
			claim := action.(clienttesting.UpdateAction).GetObject().(*corev1.PersistentVolumeClaim)
			resource := corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
			known, err := c.Client.Tracker().Get(resource, claim.Namespace, claim.Name)
			if err == nil && known.(*corev1.PersistentVolumeClaim).ResourceVersion != claim.ResourceVersion {
				err = apierrors.NewConflict(resource.GroupResource(), claim.Name, errors.New("it has changed"))
			}
			if err != nil {
				return true, nil, err
			}
			claim.ResourceVersion = fmt.Sprint(version.Add(1)) // the volume binder compares them
			if node := claim.Annotations[storagehelpers.AnnSelectedNode]; node != "" && claim.Spec.VolumeName == "" {
				s.requested <- node
			}
			return false, nil, nil
		})
	}, withArgs(ours(handle, b), args))
	s.Create(enginetest.Node("n1", 3))
	s.Group("a", 3, 0)
	s.Create(enginetest.Pod("a-0", "a"), enginetest.Pod("a-1", "a", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}}
	}), enginetest.Pod("a-2", "a"))
	return s
}

// next waits until a volume is requested, and checks that no member is bound.
func (s *storage) next() {
	s.t.Helper()
	select {
	case <-s.requested:
	case <-time.After(20 * time.Second):
		s.t.Fatal("no volume was requested")
	}
}

// unbound fails the test if a member is bound in a time.
func (s *storage) unbound(during time.Duration) {
	s.t.Helper()
	for deadline := time.Now().Add(during); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if n := s.Placed("a-0", "a-1", "a-2"); n != 0 {
			s.t.Fatalf("%d members were bound", n)
		}
	}
}

// provide makes the volume; refuse rejects that node for it.
func (s *storage) provide() {
	s.t.Helper()
	ctx := context.Background()
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "volume", Annotations: map[string]string{storagehelpers.AnnBoundByController: "yes"}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: "late", Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:    &corev1.ObjectReference{Namespace: enginetest.Namespace, Name: "data", UID: "data"},
		},
	}
	if _, err := s.Client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.claim(func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.VolumeName = "volume"
		claim.Annotations[storagehelpers.AnnBindCompleted] = "yes"
		claim.Status.Phase = corev1.ClaimBound
	})
}

// hasReported reports whether a condition ever had this text. It may have another one soon.
func (s *storage) hasReported(text string) bool {
	for _, action := range s.Client.Actions() {
		if patch, ok := action.(clienttesting.PatchAction); ok && strings.Contains(string(patch.GetPatch()), text) {
			return true
		}
	}
	return false
}

func (s *storage) refuse() {
	s.t.Helper()
	s.claim(func(claim *corev1.PersistentVolumeClaim) { delete(claim.Annotations, storagehelpers.AnnSelectedNode) })
}

func (s *storage) claim(change func(*corev1.PersistentVolumeClaim)) {
	s.t.Helper()
	claims := s.Client.CoreV1().PersistentVolumeClaims(enginetest.Namespace)
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // the engine writes to it, too
		claim, err := claims.Get(context.Background(), "data", metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(claim)
		_, err = claims.Update(context.Background(), claim, metav1.UpdateOptions{})
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
}

// nominated runs a test with and without the nomination of members on their way
// to their nodes: the engine calls plugins for different things then.
func nominated(t *testing.T, test func(t *testing.T)) {
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprintf("nominated %v", on), func(t *testing.T) {
			featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.NominatedNodeNameForExpectation, on)
			test(t)
		})
	}
}

func TestMembersWaitForAVolume(t *testing.T) {
	nominated(t, func(t *testing.T) {
		s := start(t, "")
		s.next()
		s.unbound(300 * time.Millisecond)
		s.provide()
		s.WaitPlaced("a-0", "a-1", "a-2")
	})
}

func TestAVolumeThatCannotBeMade(t *testing.T) {
	nominated(t, func(t *testing.T) {
		s := start(t, "")
		s.next()
		s.refuse()
		s.Wait("a member's condition has the reason why it is not bound", func() bool {
			return s.hasReported("member a-1 of gang ns/a could not be made ready, and the gang needs it: no member was bound")
		})
		s.unbound(50 * time.Millisecond)
		s.next() // another attempt
		s.unbound(100 * time.Millisecond)
		s.provide()
		s.WaitPlaced("a-0", "a-1", "a-2")
	})
}

// A member is deleted, at once or not, when the others wait for a volume: none of
// them is bound, and the gang is tried again when it has enough members.
func TestAMemberGoesWhileAVolumeIsMade(t *testing.T) {
	for name, leave := range map[string]func(*storage){
		"deleted": func(s *storage) { s.Delete("a-2") },
		"leaving": func(s *storage) {
			pod, err := s.Client.CoreV1().Pods(enginetest.Namespace).Get(t.Context(), "a-2", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			now := metav1.Now()
			pod.DeletionTimestamp = &now
			if err := s.Client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, pod.Namespace); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, "")
			s.next()
			s.unbound(100 * time.Millisecond) // those without a volume wait meanwhile
			leave(s)
			s.unbound(200 * time.Millisecond) // and the engine hears of it
			s.provide()
			s.Wait("a member's condition has the reason why it is not bound", func() bool {
				return s.hasReported("member a-2 of gang ns/a is gone, and the gang needs it: no member was bound")
			})
			s.unbound(100 * time.Millisecond)
			if name == "leaving" {
				s.Delete("a-2")
			}
			s.Create(enginetest.Pod("a-2", "a", func(p *corev1.Pod) { p.UID = "another" }))
			s.WaitPlaced("a-0", "a-1", "a-2")
		})
	}
}

// A node is gone when the volume is there: no member is bound to it, and the gang
// goes elsewhere.
func TestANodeGoesWhileAVolumeIsMade(t *testing.T) {
	s := start(t, "")
	s.next()
	s.Create(enginetest.Node("n2", 3))
	if err := s.Client.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.unbound(300 * time.Millisecond) // and the engine hears of it
	s.provide()
	s.WaitPlaced("a-0", "a-1", "a-2")
	for _, pod := range []string{"a-0", "a-1", "a-2"} {
		if node := s.NodeOf(pod); node != "n2" {
			t.Errorf("%s was bound to %s", pod, node)
		}
	}
}

// Where no member waits for another, the node is checked, too.
func TestANodeThatIsGone(t *testing.T) {
	nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	p := &Plugin{barrier: New(informer{}, unparked{}), nodes: corelisters.NewNodeLister(nodes)}
	pod := enginetest.Pod("a", "")
	if status := p.PreBind(t.Context(), framework.NewCycleState(), pod, "n1"); status.IsSuccess() || status.Message() != "bind pod ns/a: node n1 is gone" {
		t.Errorf("got %v", status)
	}
	if err := nodes.Add(enginetest.Node("n1", 1)); err != nil {
		t.Fatal(err)
	}
	if status := p.PreBind(t.Context(), framework.NewCycleState(), pod, "n1"); !status.IsSuccess() {
		t.Errorf("a node that is there: %v", status)
	}
}

// A pod that was deleted while it was decided on keeps no place.
func TestAPodThatIsGone(t *testing.T) {
	gone := enginetest.Pod("a", "g")
	p := &Plugin{barrier: New(informer{gone: gone}, unparked{})}
	if status := p.Reserve(t.Context(), framework.NewCycleState(), gone, "n1"); !status.IsRejected() {
		t.Errorf("got %v, want that it is refused", status)
	}
	if status := p.Reserve(t.Context(), framework.NewCycleState(), enginetest.Pod("b", "g"), "n1"); !status.IsSuccess() {
		t.Errorf("a pod that is there: %v", status)
	}
}

func TestAVolumeThatTakesTooLong(t *testing.T) {
	nominated(t, func(t *testing.T) {
		s := start(t, `{"timeout":"300ms"}`)
		s.next()
		s.Wait("a member's condition has the reason why it is not bound", func() bool {
			return s.hasReported("timeout: after 300ms only 2 of 3 members that gang ns/a needs are ready")
		})
		s.provide()
		s.WaitPlaced("a-0", "a-1", "a-2")
	})
}

func TestArgs(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:               "",
		`{"timeout":"1s"}`: "",
		`{"timeout":"0s"}`: "args.timeout: 0s is not a positive duration",
		`{"time":"1s"}`:    "time",
	} {
		_, err := args.Decode(&runtime.Unknown{Raw: []byte(text), ContentType: runtime.ContentTypeJSON}, DefaultArgs())
		if (want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// unparked are gangs of which none is parked.
type unparked struct{}

func (unparked) Wake(types.NamespacedName) {}

// informer knows every pod but one.
type informer struct{ gone *corev1.Pod }

func (informer) Activate(map[string]*corev1.Pod) {}

func (i informer) Pod(pod *corev1.Pod) *corev1.Pod {
	if pod == i.gone {
		return nil
	}
	return pod
}
