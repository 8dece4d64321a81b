package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gangctl/gangctl/sandbox/kubelet"
	"github.com/gangctl/gangctl/test/chaos"
	"github.com/gangctl/gangctl/test/faultproxy"
)

// mayhem is a cluster to which things happen.
type mayhem struct {
	*cluster
	t      *testing.T
	seed   uint64
	proxy  *faultproxy.Proxy
	sched  *ownScheduler
	script *chaos.Script
	model  *chaos.Model

	bands    map[string]*band
	count    int
	nodes    map[string]bool
	later    []todo
	happened map[chaos.Kind]int
	changed  time.Time // when a pod changed last
	hindered time.Time // until when the scheduler is kept from its work
	// sees returns what the scheduler does not watch again of what was taken from its
	// eyes, which it has to by then; nil if nothing was.
	sees    func() (missing string)
	by      time.Time
	expired int  // how often its watches were too old since it started
	away    bool // the API server is
}

// band is a gang and who makes its members again.
type band struct {
	wire
	name      string
	size, min int
	cpu       int64
	priority  int32
	pods      map[string]*corev1.Pod
	ending    bool
}

type todo struct {
	at time.Time
	do func()
}

func (m *mayhem) after(d time.Duration, do func()) {
	m.later = append(m.later, todo{time.Now().Add(d), do})
}

// due does what was to be done by now.
func (m *mayhem) due() {
	var now []todo
	m.later = slices.DeleteFunc(m.later, func(x todo) bool {
		if time.Now().Before(x.at) {
			return false
		}
		now = append(now, x)
		return true
	})
	for _, x := range now {
		x.do()
	}
}

// hinder keeps the scheduler from its work, and lets it find back.
func (m *mayhem) hinder(d time.Duration) {
	m.hindered = time.Now().Add(d + mends)
	m.model.Excuse(1 << 30)
}

// blind notes that the scheduler's watches have ended or are about to, and that it
// is blind until it has opened so many new ones of pods and of nodes, for which it
// has so long.
func (m *mayhem) blind(why chaos.Kind, pods, nodes int, within time.Duration) {
	opened := func(path string) int { return m.proxy.Count(faultproxy.Watches(path)) }
	podsBefore, nodesBefore := opened("/api/v1/pods"), opened("/api/v1/nodes")
	m.by = time.Now().Add(within)
	m.sees = func() (missing string) {
		p, n := opened("/api/v1/pods")-podsBefore, opened("/api/v1/nodes")-nodesBefore
		if p >= pods && n >= nodes {
			return ""
		}
		return fmt.Sprintf("%s after %s it has opened %d of %d watches of pods and %d of %d of nodes", within, why, p, pods, n, nodes)
	}
}

// kept reports whether the scheduler is kept from its work now.
func (m *mayhem) kept(now time.Time) bool {
	switch {
	case m.sees == nil:
	case m.sees() == "":
		m.sees, m.hindered = nil, now.Add(mends)
	case now.After(m.by):
		m.t.Errorf("the scheduler is blind: %s, after %v", m.sees(), m.happened)
		for line := range strings.Lines(m.sched.output.String()) {
			if strings.Contains(line, "reflector") || strings.Contains(line, "reconnect") {
				m.t.Log(strings.TrimSpace(line))
			}
		}
		m.sees = nil
	}
	return m.sees != nil || now.Before(m.hindered)
}

func (m *mayhem) sorted() []*band {
	var all []*band
	for _, name := range slices.Sorted(maps.Keys(m.bands)) {
		all = append(all, m.bands[name])
	}
	return all
}

// pick is one of the gangs that are not ending.
func (m *mayhem) pick(move chaos.Move) *band {
	all := slices.DeleteFunc(m.sorted(), func(b *band) bool { return b.ending })
	if len(all) == 0 {
		return nil
	}
	return all[move.Pick%len(all)]
}

// do makes a move; one for which there is nothing to move makes nothing.
func (m *mayhem) do(move chaos.Move) {
	b := m.pick(move)
	switch {
	case move.Kind == chaos.Submit && len(m.bands) < 14:
		m.submit(move)
	case move.Kind == chaos.Submit || move.Kind == chaos.Delete:
		m.end(b)
	case move.Kind == chaos.Finish && b != nil:
		m.finish(b)
	case move.Kind == chaos.Kill && b != nil:
		m.kill(b, move)
	case move.Kind == chaos.Cordon || move.Kind == chaos.LoseNode:
		m.node(move)
	case move.Kind == chaos.Restart:
		m.sched.stop()
		m.sched.start()
		m.expired = 0
		m.hinder(0)
		m.model.Restarted()
	case m.away && (move.Kind == chaos.Outage || move.Kind == chaos.Expire): // nobody watches
	case move.Kind == chaos.Outage:
		m.proxy.Down()
		m.away = true
		m.hinder(move.For)
		m.after(move.For, func() {
			m.away = false
			m.blind(move.Kind, 2, 1, findsBack) // it watches pods that live, and pods that have ended
			must(m.t, m.proxy.Up())
		})
	default:
		m.disturb(move)
	}
}

// disturb lets requests fail.
func (m *mayhem) disturb(move chaos.Move) {
	faults := map[chaos.Kind]faultproxy.Fault{chaos.Conflict: conflict, chaos.Broken: broken, chaos.Lost: faultproxy.Lose()}
	if fault := faults[move.Kind]; fault != nil {
		m.proxy.Inject(move.Count, faultproxy.Bindings(space), fault)
		m.model.Excuse(1 << 30)
	}
	if move.Kind == chaos.Expire {
		m.proxy.Inject(1, faultproxy.Watches("/api/v1/pods"), faultproxy.Expire())
		m.proxy.Inject(1, faultproxy.Watches("/api/v1/nodes"), faultproxy.Gone())
		m.hinder(0)
		m.blind(move.Kind, 3, 2, findsBack+min(relistsWithin<<min(m.expired, 10), listsAtLast)) // one of each will be in vain
		m.expired++
		must(m.t, m.proxy.Cut())
	}
}

func (m *mayhem) submit(move chaos.Move) {
	m.count++
	ws := slices.DeleteFunc(wires(), func(w wire) bool { return w.resource.Group == "policy" })
	b := &band{wire: ws[move.Dialect%len(ws)], name: fmt.Sprintf("s%d-%03d", m.seed, m.count), size: move.Size, min: move.Min, cpu: move.CPU, priority: move.Priority, pods: map[string]*corev1.Pod{}}
	m.bands[b.name] = b
	m.model.Declare(chaos.Gang{Name: b.name, Min: b.min, Priority: b.priority})
	if b.resource.Group != "" {
		m.with(m.t, b.wire).declare(b.name, b.min)
	}
	for i := range b.size {
		m.member(b, fmt.Sprintf("%s-%d", b.name, i))
	}
}

// member makes a member, unless its gang has ended meanwhile.
func (m *mayhem) member(b *band, name string) {
	if b.ending || m.bands[b.name] != b {
		return
	}
	pod := plain(name, b.scheduler, "1")
	pod.Labels = map[string]string{chaos.GangLabel: b.name}
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(b.cpu, resource.DecimalSI)
	if b.priority > 0 {
		pod.Spec.PriorityClassName = fmt.Sprint("chaos-", b.priority)
	}
	b.setGroup(pod, b.name, b.min)
	_, err := m.client.CoreV1().Pods(space).Create(m.t.Context(), pod, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		must(m.t, err)
	}
}

// end deletes a gang with its members.
func (m *mayhem) end(b *band) {
	if b == nil {
		return
	}
	b.ending = true
	m.model.End(b.name)
	must(m.t, m.client.CoreV1().Pods(space).DeleteCollection(m.t.Context(), now(), metav1.ListOptions{LabelSelector: chaos.GangLabel + "=" + b.name}))
	if b.resource.Group != "" {
		err := m.dynamic.Resource(b.resource).Namespace(space).Delete(m.t.Context(), b.name, metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) {
			must(m.t, err)
		}
	}
	delete(m.bands, b.name)
}

// finish lets the members that have places do their work, and ends the gang when
// they have.
func (m *mayhem) finish(b *band) {
	placed, _, _ := m.model.Tally(b.name)
	if placed < b.min {
		return
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, kubelet.EndsAtAnnotation, time.Now().UTC().Format(time.RFC3339))
	for _, name := range slices.Sorted(maps.Keys(b.pods)) {
		if b.pods[name].Spec.NodeName != "" {
			_, err := m.client.CoreV1().Pods(space).Patch(m.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
			if !apierrors.IsNotFound(err) {
				must(m.t, err)
			}
		}
	}
	m.after(3*time.Second, func() {
		if m.bands[b.name] == b {
			m.end(b)
		}
	})
}

// kill lets members die; see makes them again.
func (m *mayhem) kill(b *band, move chaos.Move) {
	names := slices.Sorted(maps.Keys(b.pods))
	for i := range min(move.Count, len(names)) {
		err := m.client.CoreV1().Pods(space).Delete(m.t.Context(), names[(move.Pick+i)%len(names)], now())
		if !apierrors.IsNotFound(err) {
			must(m.t, err)
		}
	}
}

// node takes a node away for a while, or closes it.
func (m *mayhem) node(move chaos.Move) {
	nodes := m.client.CoreV1().Nodes()
	list, err := nodes.List(m.t.Context(), metav1.ListOptions{})
	must(m.t, err)
	open := slices.DeleteFunc(list.Items, func(n corev1.Node) bool { return n.Spec.Unschedulable })
	if len(open) < chaosNodes/2 {
		return
	}
	m.model.Excuse(1 << 30)
	name := open[move.Pick%len(open)].Name
	if move.Kind == chaos.Cordon {
		m.cordon(name, true)
		m.after(move.For, func() { m.cordon(name, false) })
		return
	}
	must(m.t, nodes.Delete(m.t.Context(), name, now()))
	delete(m.nodes, name)
	for _, b := range m.sorted() {
		for _, pod := range b.pods {
			if pod.Spec.NodeName == name {
				m.remove(pod)
			}
		}
	}
	m.after(move.For, m.addNode)
}

// remove deletes this very pod, if it is still there.
func (m *mayhem) remove(pod *corev1.Pod) {
	options := now()
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	if err := m.client.CoreV1().Pods(space).Delete(m.t.Context(), pod.Name, options); !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		must(m.t, err)
	}
}

func (m *mayhem) cordon(name string, on bool) {
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, on)
	_, err := m.client.CoreV1().Nodes().Patch(m.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		must(m.t, err)
	}
}

func (m *mayhem) addNode() {
	out, stderr, err := m.Run("node", "add", "--count", "1", "--cpu", fmt.Sprint(chaosCPUs), "--gpus", "0")
	if err != nil {
		m.t.Fatalf("add a node: %v\n%s", err, stderr)
	}
	var name string
	if _, err := fmt.Sscanf(out, "node/%s added", &name); err != nil {
		m.t.Fatalf("add a node: %q: %v", out, err)
	}
	m.nodes[name] = true
}

// removeAll leaves the cluster empty for the next seed.
func (m *mayhem) removeAll(events <-chan watch.Event) {
	for _, b := range m.sorted() {
		m.end(b)
	}
	list, err := m.client.CoreV1().Nodes().List(m.t.Context(), metav1.ListOptions{})
	must(m.t, err)
	for _, n := range list.Items {
		must(m.t, m.client.CoreV1().Nodes().Delete(m.t.Context(), n.Name, now()))
	}
	m.empty(m.t)
	for len(events) > 0 {
		<-events
	}
}

// priorities makes classes of some values.
func (c *cluster) priorities(t *testing.T, values ...int32) {
	t.Helper()
	for _, v := range values {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("chaos-", v)}, Value: v}
		_, err := c.client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{})
		must(t, err)
	}
}
