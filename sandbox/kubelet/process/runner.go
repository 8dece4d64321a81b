// Package process runs the containers of one image for real: as processes on
// this machine, with the token of the pod's own service account and the files of
// its ConfigMaps. All other pods of a sandbox are simulated. What such a process
// may not do, it is refused, as in a cluster.
package process

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// Runner is the kubelet of the pods that run for real.
type Runner struct {
	Client kubernetes.Interface
	// Image is the last part of an image's name, without tag.
	Image string
	// Program runs in place of what such an image holds; an absolute path.
	Program string
	// Dir is where the files and logs of pods lie; an absolute path.
	Dir string
	// Server is the API server's URL; CA is the file with the certificate that signs it.
	Server, CA string
	Log        *slog.Logger

	mu   sync.Mutex
	pods map[types.UID]context.CancelFunc
	work sync.WaitGroup
}

// ImagePattern matches the full names of images whose last part is a name; it is
// a regular expression for Go and for jq.
func ImagePattern(name string) string { return "(^|/)" + regexp.QuoteMeta(name) + "([:@]|$)" }

// Runs reports whether a pod is the runner's.
func (r *Runner) Runs(pod *corev1.Pod) bool {
	return len(pod.Spec.Containers) > 0 && regexp.MustCompile(ImagePattern(r.Image)).MatchString(pod.Spec.Containers[0].Image)
}

// Run follows the pods until ctx ends, and returns when no process of theirs is left.
func (r *Runner) Run(ctx context.Context) error {
	r.pods = map[types.UID]context.CancelFunc{}
	defer r.work.Wait()
	bound := fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	lw := cache.NewFilteredListWatchFromClient(r.Client.CoreV1().RESTClient(), "pods", corev1.NamespaceAll,
		func(o *metav1.ListOptions) { o.FieldSelector = bound })
	informer := cache.NewSharedInformer(lw, &corev1.Pod{}, 0)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { r.see(ctx, object) },
		UpdateFunc: func(_, object any) { r.see(ctx, object) },
		DeleteFunc: r.forget,
	})
	if err != nil {
		return fmt.Errorf("follow pods: %w", err)
	}
	informer.RunWithContext(ctx)
	return nil
}

// see starts a pod that is new, and ends one that is being deleted.
func (r *Runner) see(ctx context.Context, object any) {
	p, ok := object.(*corev1.Pod)
	if !ok || !r.Runs(p) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	end, known := r.pods[p.UID]
	if known && p.DeletionTimestamp != nil {
		end()
	}
	over := podutil.IsPodTerminal(p)
	if known || (over && p.DeletionTimestamp == nil) {
		return
	}
	life, end := context.WithCancel(ctx)
	r.pods[p.UID] = end
	if p.DeletionTimestamp != nil {
		end() // only its end has to be reported
	}
	r.work.Go(func() {
		(&pod{runner: r, spec: p, dir: r.dir(p)}).live(ctx, life)
	})
}

func (r *Runner) forget(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	p, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if end := r.pods[p.UID]; end != nil {
		end()
		delete(r.pods, p.UID)
	}
}

func (r *Runner) dir(p *corev1.Pod) string {
	return filepath.Join(r.Dir, p.Namespace+"_"+p.Name+"_"+string(p.UID))
}

// LogFile is the log of the container of a pod, in this run or the one
// before. It is false for a pod that is not the runner's.
func (r *Runner) LogFile(p *corev1.Pod, previous bool) (string, bool) {
	if r == nil || !r.Runs(p) {
		return "", false
	}
	name := "current.log"
	if previous {
		name = "previous.log"
	}
	return filepath.Join(r.dir(p), name), true
}
