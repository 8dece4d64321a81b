package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// blockLabel is the node label of what several racks are in.
const blockLabel = "example.com/block"

// threads are what was reported.
func threads() []thread {
	twoOfFour := []machine{{name: "n1", cpu: "4"}, {name: "n2", cpu: "4"}}
	return []thread{
		{name: "volcano-sh/volcano#5805", test: "a freed place", dialect: "volcano", machines: twoOfFour, run: freedPlace, stock: "the other pod has the place"},
		{name: "volcano-sh/volcano#5205", test: "six nodes", dialect: "volcano", machines: inOrder(2, 3, 4, 5, 0, 1), run: preferredRack, stock: "are in the racks", chance: true},
		{name: "volcano-sh/volcano#4343", test: "four members in two racks", dialect: "volcano", machines: inOrder(0, 2, 4, 1, 3, 5), run: fewRacks},
		{name: "volcano-sh/volcano#4374", test: "preemption in one rack", dialect: "volcano", machines: fourNodes(), run: preemptionInOneRack, long: true},
		{name: "volcano-sh/volcano#4607", test: "a gang is preempted as a whole", dialect: "volcano", machines: twoOfFour, run: preemptedAsAWhole, stock: "1 of 2 members of the victim goes on"},
		{name: "volcano-sh/volcano#5984", test: "one of eleven goes", dialect: "volcano", machines: []machine{{name: "n1", cpu: "11"}}, run: oneOfElevenGoes, long: true},
		{name: "volcano-sh/volcano#3291", test: "a free node and one to be freed", dialect: "volcano", machines: twoOfFour, run: freeAndFreed, long: true},
		{name: "kubernetes-sigs/kueue#9361", test: "preferred within required", dialect: "labels", machines: blocks(), run: preferredWithinRequired, stock: "are in the racks", chance: true},
		{name: "kubernetes-sigs/kueue#14244", test: "two nodes die", dialect: "labels", machines: sixInOneRack(), run: twoNodesDie},
		{name: "kubernetes-sigs/kueue#14092", test: "no other node in the rack", dialect: "labels", machines: fourNodes(), run: noOtherNode, long: true},
		{name: "kubernetes/kubernetes#142330", test: "a completed member", dialect: "native", machines: twoOfFour, run: completedMember, stock: "the replacement has no node"},
		{name: "kubernetes-sigs/scheduler-plugins#930", test: "two nodes of which one is taken", dialect: "scheduler-plugins", machines: twoOfFour, run: oneIsTaken, long: true},
		{name: "kubernetes-sigs/scheduler-plugins#682", test: "sixteen that do not fit", dialect: "scheduler-plugins", machines: twoOfFour, run: othersGoOn("1", 16), long: true},
		{name: "kubernetes-sigs/scheduler-plugins#450", test: "the second member comes late", dialect: "scheduler-plugins", machines: twoOfFour, run: secondComesLate, long: true},
		{
			name: "kubernetes-sigs/scheduler-plugins#429", test: "room in fragments", long: true, dialect: "scheduler-plugins",
			machines: []machine{{name: "n1", cpu: "6"}, {name: "n2", cpu: "2"}, {name: "n3", cpu: "2"}, {name: "n4", cpu: "2"}}, run: othersGoOn("4", 3),
		},
		{name: "kubernetes-sigs/scheduler-plugins#949", test: "a large gang at the head", dialect: "scheduler-plugins", machines: twoOfFour, run: largeAtTheHead, long: true},
		{name: "koordinator-sh/koordinator#1160", test: "preemption for a part", dialect: "koordinator", machines: twoOfFour, run: preemptionForAPart, long: true},
		{name: "NVIDIA/nvcf#598", test: "the fuller rack has no room", dialect: "kai", machines: fourNodes(), run: fullerRack, long: true},
	}
}

func sixNodes() []machine {
	return []machine{
		{name: "n1", cpu: "4", rack: "h1"}, {name: "n2", cpu: "4", rack: "h1"}, {name: "n3", cpu: "4", rack: "h2"},
		{name: "n4", cpu: "4", rack: "h2"}, {name: "n5", cpu: "4", rack: "h3"}, {name: "n6", cpu: "4", rack: "h3"},
	}
}

// inOrder are the six nodes in another order of creation, by which kube-scheduler comes to them.
func inOrder(positions ...int) (all []machine) {
	for _, at := range positions {
		all = append(all, sixNodes()[at])
	}
	return all
}

func fourNodes() []machine { return sixNodes()[:4] }

func sixInOneRack() (all []machine) {
	for _, m := range sixNodes() {
		m.rack = "h1"
		all = append(all, m)
	}
	return append(all, machine{name: "n7", cpu: "4", rack: "h2"}, machine{name: "n8", cpu: "4", rack: "h2"})
}

func blocks() (all []machine) {
	for i, m := range sixNodes() {
		m.block = []string{"b1", "b1", "b1", "b1", "b2", "b2"}[i]
		all = append(all, m)
	}
	return all
}

// cpu has a pod request so many CPUs.
func cpu(n string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(n)
	}
}

// on lets a pod have no node but one.
func (p peer) on(node string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: p.node(node)} }
}

// single makes a pod that is in no gang.
func (p peer) single(name string, change ...func(*corev1.Pod)) string {
	p.t.Helper()
	pod := plain(p.prefix+"-"+name, p.scheduler, "1")
	for _, c := range change {
		c(pod)
	}
	p.create(p.t, pod)
	return pod.Name
}

// fill has pods occupy nodes.
func (p peer) fill(nodes ...string) (names []string) {
	p.t.Helper()
	for _, node := range nodes {
		names = append(names, p.single("on-"+node, cpu("4"), p.on(node)))
	}
	p.placed(p.t, names...)
	return names
}

// gang makes a gang, all of whose members it needs, and returns its members.
func (p peer) gang(name string, count int, change ...func(*corev1.Pod)) []string {
	p.t.Helper()
	p.declare(p.prefix+"-"+name, count)
	p.members(p.prefix+"-"+name, count, count, change...)
	return p.names(p.prefix+"-"+name, count)
}

// again makes a member of a gang in place of one that is gone.
func (p peer) again(name, member string, count int, change ...func(*corev1.Pod)) string {
	p.t.Helper()
	pod := plain(member+"-again", p.scheduler, "1")
	p.setGroup(pod, p.prefix+"-"+name, count)
	for _, c := range change {
		c(pod)
	}
	p.create(p.t, pod)
	return pod.Name
}

// sharing has the gangs of a peer share a domain, and returns how their pods have to be changed for that. What kube-scheduler has no field for
// is an affinity.
func (p peer) sharing(topology gang.Topology) (peer, func(*corev1.Pod)) {
	if !p.stock {
		return p, func(pod *corev1.Pod) {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, gang.TopologyRequired, topology.Required)
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, gang.TopologyPreferred, strings.Join(topology.Preferred, ","))
		}
	}
	if spec := p.spec; topology.Required != "" {
		p.spec = func(min int) map[string]any {
			s := spec(min)
			s["schedulingConstraints"] = map[string]any{"topology": []any{map[string]any{"key": topology.Required}}}
			return s
		}
	}
	return p, func(pod *corev1.Pod) {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, "gang", *pod.Spec.SchedulingGroup.PodGroupName)
		for _, key := range topology.Preferred {
			pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight:          100,
				PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"gang": pod.Labels["gang"]}}},
			}}}}
		}
	}
}

// decided waits until a scheduler has tried a pod: it has a node, or a condition.
func (p peer) decided(name string) {
	p.t.Helper()
	eventually(p.t, name+" was tried", func(ctx context.Context) bool {
		pod, err := p.client.CoreV1().Pods(space).Get(ctx, name, metav1.GetOptions{})
		return err == nil && (pod.Spec.NodeName != "" || len(pod.Status.Conditions) > 0)
	})
}

// freedPlace: a gang of eight on eight CPUs loses a member, whose place a pod waits for. The replacement comes a second later.
func freedPlace(p peer) error {
	members := p.gang("a", 8)
	p.placed(p.t, members...)
	other := p.single("other")
	p.decided(other)
	p.kill(p.t, members[7])
	time.Sleep(time.Second) // as long as a controller takes
	replacement := p.again("a", members[7], 8)
	err := p.have("no replacement", replacement)
	if p.bound(p.t, other) == 1 {
		return fmt.Errorf("the other pod has the place, and the gang 7 members of 8")
	}
	return err
}

// preferredRack: h1 has two free nodes, h2 and h3 one each, and the two members of a gang, on two nodes, should be in one rack.
func preferredRack(p peer) error {
	p.fill("n4", "n6")
	q, inRack := p.sharing(gang.Topology{Preferred: []string{rackLabel}})
	return q.often(func(i int) error {
		members := q.gang(fmt.Sprint("a", i), 2, cpu("3"), inRack)
		q.placed(q.t, members...)
		return q.oneRack("h1", members...)
	})
}

// fewRacks: three racks have two free nodes each, and the four members of a gang, on four nodes, should be in as few racks as possible.
func fewRacks(p peer) error {
	q, inRack := p.sharing(gang.Topology{Preferred: []string{rackLabel}})
	return q.often(func(i int) error {
		members := q.gang(fmt.Sprint("a", i), 4, cpu("3"), inRack)
		q.placed(q.t, members...)
		if racks := q.racksOf(q.t, members...); len(racks) > 2 {
			return fmt.Errorf("the members are in the racks %s", strings.Join(racks, " and "))
		}
		return nil
	})
}

// often does something several times, as it is a matter of chance: 100 times in the long tests.
func (p peer) often(once func(i int) error) error {
	times, wrong := 5, []error(nil)
	if long() {
		times = 100
	}
	for i := range times {
		if err := once(i); err != nil {
			wrong = append(wrong, err)
		}
		p.endGang(fmt.Sprint("a", i))
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d of %d times %w", len(wrong), times, wrong[0])
	}
	return nil
}

// endGang deletes the pods of a gang, and waits until they are gone.
func (p peer) endGang(name string) {
	p.t.Helper()
	eventually(p.t, "the gang is gone", func(ctx context.Context) bool {
		list, err := p.client.CoreV1().Pods(space).List(ctx, metav1.ListOptions{})
		must(p.t, err)
		left := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !strings.HasPrefix(pod.Name, p.prefix+"-"+name+"-") })
		for _, pod := range left {
			if pod.DeletionTimestamp == nil {
				p.kill(p.t, pod.Name)
			}
		}
		return len(left) == 0
	})
}

// oneRack returns an error unless pods that have nodes are in one rack; empty is any.
func (p peer) oneRack(rack string, names ...string) error {
	p.t.Helper()
	if racks := p.racksOf(p.t, names...); len(racks) != 1 || rack != "" && racks[0] != rack {
		return fmt.Errorf("the members are in the racks %s", strings.Join(racks, " and "))
	}
	return nil
}

// preemptionInOneRack: of each of two racks one node is free and one has a pod of lower priority.
func preemptionInOneRack(p peer) error {
	low := p.fill("n2", "n3")
	p.team = p.with(p.t, p.ranked("urgent"))
	q, inRack := p.sharing(gang.Topology{Required: rackLabel})
	members := q.gang("a", 2, cpu("4"), class("urgent"), inRack)
	if err := q.have("the gang has no nodes", members...); err != nil {
		return err
	}
	if n := len(q.left(q.t, low...)); n != 1 {
		return fmt.Errorf("%d of 2 pods of lower priority are left, where one had to go", n)
	}
	return q.oneRack("", members...)
}

// preemptedAsAWhole: a gang of two has both nodes, and a pod of a higher priority needs one.
func preemptedAsAWhole(p peer) error {
	low := p.gang("low", 2, cpu("4"))
	p.placed(p.t, low...)
	high := p.single("high", cpu("4"), class("urgent"))
	p.placed(p.t, high)
	wrong := "1 of 2 members of the victim goes on"
	return p.eventually(wrong, func() bool { return len(p.left(p.t, low...)) == 0 })
}

// oneOfElevenGoes: a gang of eleven that needs one has a node, and a pod of a higher priority needs a place.
func oneOfElevenGoes(p peer) error {
	p.declare(p.prefix+"-low", 1)
	p.members(p.prefix+"-low", 1, 11)
	low := p.names(p.prefix+"-low", 11)
	p.placed(p.t, low...)
	if err := p.have("no node for the pod of higher priority", p.single("high", class("urgent"))); err != nil {
		return err
	}
	if left := p.left(p.t, low...); len(left) != 10 {
		return fmt.Errorf("%d of 11 members are left, where one had to go", len(left))
	}
	return nil
}

// freeAndFreed: a gang of a higher priority needs two nodes, of which one is free.
func freeAndFreed(p peer) error {
	p.fill("n1")
	p.team = p.with(p.t, p.ranked("urgent"))
	return p.have("the gang has no nodes", p.gang("a", 2, cpu("4"), class("urgent"))...)
}

// preferredWithinRequired: the gang must be in one block and should be in one rack of it. Of the racks of b1 one has one free node and one two,
// and b2 has one.
func preferredWithinRequired(p peer) error {
	p.fill("n2", "n6")
	q, shared := p.sharing(gang.Topology{Required: blockLabel, Preferred: []string{rackLabel}})
	return q.often(func(i int) error {
		members := q.gang(fmt.Sprint("a", i), 2, cpu("3"), shared)
		q.placed(q.t, members...)
		return q.oneRack("h2", members...)
	})
}

// dies has a node go, and the pods on it once the scheduler knows: nodes and pods are two watches, and a replacement that comes before might be bound to
// the node.
func (p peer) dies(node string) (members []string, err error) {
	p.t.Helper()
	list, err := p.client.CoreV1().Pods(space).List(p.t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	must(p.t, err)
	must(p.t, p.client.CoreV1().Nodes().Delete(p.t.Context(), node, now()))
	if err := p.knows(node); err != nil {
		return nil, err
	}
	for _, pod := range list.Items {
		p.kill(p.t, pod.Name)
		members = append(members, pod.Name)
	}
	return members, nil
}

// knows waits until the scheduler knows that a node is gone, by how many nodes it says that it has for a pod that can be on none.
func (p peer) knows(gone string) error {
	p.t.Helper()
	nodes, err := p.client.CoreV1().Nodes().List(p.t.Context(), metav1.ListOptions{})
	must(p.t, err)
	tries := 0
	return p.eventually("the scheduler does not know that node "+gone+" is gone", func() bool {
		tries++
		name := p.single(fmt.Sprintf("without-%s-%d", gone, tries), func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"is": "nowhere"} })
		p.decided(name)
		defer p.kill(p.t, name)
		pod, err := p.client.CoreV1().Pods(space).Get(p.t.Context(), name, metav1.GetOptions{})
		must(p.t, err)
		return strings.Contains(conditionOf(pod), fmt.Sprintf(": 0/%d nodes ", len(nodes.Items)))
	})
}

// nodeOf is the node of a pod.
func (p peer) nodeOf(name string) string {
	p.t.Helper()
	pod, err := p.client.CoreV1().Pods(space).Get(p.t.Context(), name, metav1.GetOptions{})
	must(p.t, err)
	return pod.Spec.NodeName
}

// run waits until members have run for a while: a gang that loses a node as it starts waits as a whole.
func (p peer) run(members ...string) error {
	return p.eventually("the members do not run", func() bool {
		for _, name := range members {
			pod, err := p.client.CoreV1().Pods(space).Get(p.t.Context(), name, metav1.GetOptions{})
			must(p.t, err)
			if pod.Status.Phase != corev1.PodRunning || time.Since(pod.Status.StartTime.Time) < 5*time.Second {
				return false
			}
		}
		return true
	})
}

// twoNodesDie: a gang of four runs in a rack of six nodes, of which two die at once. There are two others in the rack, and two elsewhere.
func twoNodesDie(p peer) error {
	q, inRack := p.sharing(gang.Topology{Required: rackLabel})
	members := q.gang("a", 4, cpu("4"), inRack)
	if err := q.run(members...); err != nil {
		return err
	}
	stay := members[:2]
	var replacements []string
	for _, lost := range members[2:] {
		dead, err := q.dies(q.nodeOf(lost))
		if err != nil {
			return err
		}
		for _, gone := range dead {
			replacements = append(replacements, q.again("a", gone, 4, cpu("4"), inRack))
		}
	}
	if err := q.have("the replacements have no nodes", replacements...); err != nil {
		return err
	}
	if q.bound(q.t, stay...) != 2 {
		return errors.New("the members whose nodes did not die are gone")
	}
	return q.oneRack("h1", append(replacements, stay...)...)
}

// noOtherNode: a gang runs on both nodes of a rack, of which one dies. The other rack has room for the replacement, which must not go there, and the others
// stay.
func noOtherNode(p peer) error {
	q, inRack := p.sharing(gang.Topology{Required: rackLabel})
	members := q.gang("a", 2, cpu("4"), inRack)
	if err := q.run(members...); err != nil {
		return err
	}
	if _, err := q.dies(q.nodeOf(members[1])); err != nil {
		return err
	}
	replacement := q.again("a", members[1], 2, cpu("4"), inRack)
	q.decided(replacement)
	time.Sleep(2 * time.Second) // a second attempt
	if node := q.nodeOf(replacement); node != "" {
		return fmt.Errorf("the replacement is on %s, of another rack", node)
	}
	if q.bound(q.t, members[0]) != 1 {
		return errors.New("the member whose node did not die is gone")
	}
	if !q.stock {
		q.waitMessage(q.t, replacement, rackLabel)
	}
	return nil
}

// completedMember: of a gang of three one member has completed, and another is lost.
func completedMember(p peer) error {
	members := p.gang("a", 3, func(pod *corev1.Pod) {
		if strings.HasSuffix(pod.Name, "-0") {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "sandbox.gangctl.dev/run-for", "500ms")
		}
	})
	eventually(p.t, "the first member has completed", func(ctx context.Context) bool {
		pod, err := p.client.CoreV1().Pods(space).Get(ctx, members[0], metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodSucceeded
	})
	p.kill(p.t, members[1])
	return p.have("the replacement has no node", p.again("a", members[1], 3))
}

// oneIsTaken: a gang needs two nodes, of which a pod has one, until it goes.
func oneIsTaken(p peer) error {
	taken := p.fill("n1")
	members := p.gang("a", 2, cpu("4"))
	p.decided(members[0])
	for range 20 {
		if n := p.bound(p.t, members...); n != 0 {
			return fmt.Errorf("%d of 2 members have nodes", n)
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.kill(p.t, taken[0])
	return p.have("the gang has no nodes", members...)
}

// othersGoOn: a gang of so many, each of so many CPUs, does not fit. Pods that come later do.
func othersGoOn(cpus string, count int) func(peer) error {
	return func(p peer) error {
		members := p.gang("a", count, cpu(cpus))
		p.decided(members[0])
		for i := range 3 {
			if err := p.have("a pod that fits has no node", p.single(fmt.Sprint("s", i), cpu("2"))); err != nil {
				return err
			}
		}
		if n := p.bound(p.t, members...); n != 0 {
			return fmt.Errorf("%d of %d members have nodes", n, count)
		}
		return nil
	}
}

// secondComesLate: of a gang of two the second member is created a second and a half after the first; the gang starts when it is there, and not a minute later.
func secondComesLate(p peer) error {
	p.declare(p.prefix+"-a", 2)
	p.members(p.prefix+"-a", 2, 1)
	time.Sleep(1500 * time.Millisecond)
	second := p.again("a", p.prefix+"-a-1", 2)
	start := time.Now()
	if err := p.have("the gang has no nodes", p.prefix+"-a-0", second); err != nil {
		return err
	}
	if took := time.Since(start); took > 5*time.Second {
		return fmt.Errorf("the gang started %s after its last member came", took)
	}
	return nil
}

// largeAtTheHead: a gang that does not fit is first, one that does comes later.
func largeAtTheHead(p peer) error {
	large := p.gang("large", 9)
	p.decided(large[0])
	return p.have("the small gang has no nodes", p.gang("small", 3)...)
}

// preemptionForAPart: a gang of a higher priority needs more than there would be without all others.
func preemptionForAPart(p peer) error {
	low := p.fill("n1", "n2")
	p.team = p.with(p.t, p.ranked("urgent"))
	members := p.gang("a", 9, class("urgent"))
	p.decided(members[0])
	time.Sleep(2 * time.Second) // further attempts
	if n := len(p.left(p.t, low...)); n != 2 {
		return fmt.Errorf("%d of 2 pods of lower priority are left, and the gang waits all the same", n)
	}
	return nil
}

// fullerRack: a gang needs two nodes of a rack, of which the fuller one has one.
func fullerRack(p peer) error {
	p.fill("n2")
	q, inRack := p.sharing(gang.Topology{Required: rackLabel})
	members := q.gang("a", 2, cpu("3"), inRack)
	if err := q.have("the gang has no nodes", members...); err != nil {
		return err
	}
	return q.oneRack("h2", members...)
}
