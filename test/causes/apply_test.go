package causes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	gangs "github.com/gangctl/gangctl/pkg/gang"
)

// apply does an action to a scenario, by the stable keys of its change alone. known is false for keys that scenarios have nothing for.
func (s scenario) apply(x answer.Action) (after scenario, known bool) {
	s = s.clone()
	switch x.Kind {
	case answer.Wait, answer.Evict:
		names, ok := x.Change["jobs"].([]string)
		if count, limited := x.Change["count"].(int); limited {
			names = names[:count]
		}
		x.Change = maps.Clone(x.Change)
		replicas, some := x.Change["replicas"].(map[string]int)
		going, _ := x.Change["pods"].([]string)
		names = slices.Clone(names)
		for name, left := range replicas {
			s.scale(name, left, going)
			names = slices.DeleteFunc(names, func(other string) bool { return other == name })
		}
		s = s.without(names)
		delete(x.Change, "jobs")
		delete(x.Change, "count")
		delete(x.Change, "replicas")
		if some {
			delete(x.Change, "pods")
		}
		if len(x.Change) > 0 { // together with a fix
			return s.edited(x)
		}
		return s, ok
	case answer.Uncordon:
		return s, s.eachNode(last(x.Change), func(n *node) { n.cordoned = false })
	case answer.AddNodes:
		count, _ := x.Change["count"].(int64)
		like, _ := x.Change["like"].(string)
		return s.withMore(like, count)
	case answer.Quota:
		return s, s.raise(x.Change)
	case answer.Move:
		return s, false
	default:
		return s.edited(x)
	}
}

// edited is the scenario with the job, or what a fix repairs, changed. A role that is changed is submitted again.
func (s scenario) edited(x answer.Action) (scenario, bool) {
	whole := s.gang.min >= s.gang.members()
	before := s.clone().gang.roles
	for key, value := range x.Change {
		if _, some := x.Change["count"]; some && key == "nodes" {
			value = last(x.Change)
		}
		if key != "count" && !s.setEach(key, value) {
			return s, false
		}
	}
	for i, was := range before {
		r := &s.gang.roles[i]
		if device := was.device(); x.Kind == answer.Reshape && r.requests[device] != was.requests[device] {
			r.shrink(device, was.requests, r.requests[device], was.requests[device])
			if others := members(before) - was.replicas; !whole && s.gang.min > others { // so many of the minimum are of this role: they grow in proportion
				own := s.gang.min - others
				s.gang.min = others + (own*r.replicas+was.replicas-1)/was.replicas
			}
		}
		if was.replicas != r.replicas || x.By == answer.User && strings.Contains(keys(x.Change), r.name+".") {
			s.gang.created, s.gang.bound, s.gang.late = false, nil, 0
		}
	}
	if !s.gang.created && s.gang.madeByOperator() {
		s.control.group = declared // it makes the object again
	}
	if whole {
		s.gang.min = s.gang.members()
	}
	if x.Kind == answer.Fewer || x.Kind == answer.Trim {
		s.gang.min = min(s.gang.min, s.gang.members())
	}
	return s, true
}

// madeByOperator reports whether the job's operator makes the object that declares the gang.
func (g gang) madeByOperator() bool {
	return g.kind != "Job" && g.kind != barePods && (g.dialect == gangs.SchedulerPlugins || g.dialect == gangs.Volcano)
}

func members(roles []role) int { return gang{roles: roles}.members() }

func keys(change map[string]any) string {
	var b strings.Builder
	for key := range change {
		b.WriteString(key + " ")
	}
	return b.String()
}

// shrink gives a role of smaller members all its requests in proportion, rounded up.
func (r *role) shrink(device string, was amounts, num, den int64) {
	for name, n := range was {
		if name != device {
			r.requests[name] = (n*num + den - 1) / den
		}
	}
}

// setEach changes one field. What several fixes change has a value from each.
func (s *scenario) setEach(key string, value any) bool {
	values, several := value.([]any)
	if !several {
		values = []any{value}
	}
	for _, v := range values {
		if _, nested := v.([]any); nested && !s.setEach(key, v) || !nested && !s.set(key, v) {
			return false
		}
	}
	return true
}

// set changes one field.
func (s *scenario) set(key string, value any) bool {
	switch key {
	case "nodes": // repaired or healed
		return s.eachNode(value, func(n *node) {
			n.down = false
			n.heal()
		})
	case "uncordon": // alongside others
		return s.eachNode(value, func(n *node) { n.cordoned = false })
	case "pods": // cleared
		for i, c := range s.consumers {
			if c.leaving == stuck {
				s.consumers[i].nodes = nil
			}
		}
	case "suspend":
		s.gang.suspended, s.gang.created = false, true
	case "minMember":
		n, ok := value.(int64)
		s.gang.min = int(n)
		return ok
	case "podGroup":
		s.control.group = declared
	case "queue":
		if s.control.queue == nil {
			return s.control.kueue != nil
		}
		s.control.queue.missing, s.control.queue.older = false, false
	case "state":
		s.control.queue.closed = false
	case "claim":
		s.control.claim = &claim{}
	case "active":
		s.control.kueue.inactive = false
	case "stopPolicy":
		s.control.kueue.stopped = false
	case "priorityClassName", "runtimeClassName", "priorityClass", "runtimeClass", "serviceAccount":
		s.gang.absent = ""
	case "schedulerName": // of a job that is submitted again
		s.gang.misnamed, s.gang.created = "", false
	case "deployment":
		s.control.operator, s.control.scheduler = up, up
	case "resource": // renamed
		to, ok := value.(string)
		s.rename(to)
		return ok
	case "role": // of what else changes
	default:
		name, field, ok := strings.Cut(key, ".")
		at := slices.IndexFunc(s.gang.roles, func(r role) bool { return r.name == name })
		return ok && at >= 0 && s.gang.roles[at].set(s, field, value)
	}
	return true
}

// rename has members request a device by another name.
func (s *scenario) rename(to string) {
	for i := range s.gang.roles {
		requests := s.gang.roles[i].requests
		for name, n := range requests {
			if strings.Contains(name, "/") && name != rdma && name != to {
				delete(requests, name)
				requests[to] = n
			}
		}
	}
}

// set changes one field of a role.
func (r *role) set(s *scenario, field string, value any) bool {
	field, key, _ := strings.Cut(field, ".")
	text, _ := value.(string)
	switch field {
	case "replicas":
		n, ok := value.(int64)
		r.replicas = int(n)
		return ok
	case "gpu":
		n, ok := value.(int64)
		r.requests[r.device()] = n
		return ok
	case "nodeSelector":
		if r.selector[key] = text; text == "" {
			delete(r.selector, key)
		}
	case "nodeAffinity":
		r.zones = nil
		if text != "preferred" && text != "" {
			r.zones = []string{text}
		}
	case "podAntiAffinity":
		r.apart = false
	case "podAffinity":
		s.gang.together = ""
	case "topologySpread":
		r.spread = ""
	case "hostPort":
		r.hostPort = 0
	case "tolerations":
		key, _, _ := strings.Cut(text, "=")
		r.tolerates = append(r.tolerates, key)
	default:
		return r.request(field, key, text)
	}
	return true
}

// device is the resource that keys call gpu: that of a role that requests no GPU is its other device.
func (r role) device() string {
	for name := range r.requests {
		if strings.Contains(name, "/") && r.requests[gpu] == 0 {
			return name
		}
	}
	return gpu
}

// request changes what a role requests of a resource, whose name may have dots.
func (r *role) request(field, rest, text string) bool {
	name := field
	if rest != "" {
		name += "." + rest
	}
	q, err := resource.ParseQuantity(text)
	if _, requested := r.requests[name]; err != nil || !requested {
		return false
	}
	if r.requests[name] = q.Value(); name == cpu {
		r.requests[name] = q.MilliValue()
	}
	return true
}

// without removes consumers, and gangs of the queue, by their names with a namespace.
func (s scenario) without(names []string) scenario {
	return s.emptied(func(c consumer) bool { return slices.Contains(names, c.title()) }).leaveQueue(names)
}

// scale takes pods of a service away until so many are left: those that have to go, or else the last.
func (s *scenario) scale(name string, left int, going []string) {
	for i, c := range s.consumers {
		if c.title() != name {
			continue
		}
		nodes := slices.Clone(c.nodes)
		for at := len(nodes) - 1; at >= 0 && len(nodes) > left; at-- {
			if len(going) == 0 || slices.Contains(going, fmt.Sprintf("%s-abc-%d", c.name, at)) {
				nodes = slices.Delete(nodes, at, at+1)
			}
		}
		s.consumers[i].nodes = nodes
	}
}

// last are the nodes of a change; of any count of some, the last.
func last(change map[string]any) any {
	names, ok := change["nodes"].([]string)
	if count, some := change["count"].(int); ok && some {
		return names[len(names)-count:]
	}
	return change["nodes"]
}

// title is a consumer's name as answers have it.
func (c consumer) title() string {
	switch c.kind {
	case aService:
		return "serving/" + c.name
	case aDaemon:
		return "kube-system/" + c.name
	case aJob, aPlainPod:
	}
	return "research/" + c.name
}

func (s scenario) leaveQueue(names []string) scenario {
	if k := s.control.kueue; k != nil && slices.Contains(names, "team/tenant") {
		k.usedGPUs = 0
	}
	if q := s.control.queue; q != nil {
		q.older = q.older && !slices.Contains(names, "research/older")
		q.stuck = q.stuck && !slices.Contains(names, "research/stuck")
		if slices.Contains(names, "research/tenant") {
			q.used = nil
		}
	}
	return s
}

// eachNode changes the nodes of some names.
func (s *scenario) eachNode(names any, edit func(*node)) bool {
	list, ok := names.([]string)
	for i := range s.nodes {
		if slices.Contains(list, s.nodes[i].name) {
			edit(&s.nodes[i])
		}
	}
	return ok
}

// withMore is the scenario with more nodes like one, which are open, up and healthy, and have its DaemonSets.
func (s scenario) withMore(like string, count int64) (scenario, bool) {
	at := slices.IndexFunc(s.nodes, func(n node) bool { return n.name == like })
	if at < 0 {
		return s, false
	}
	model := scenario{nodes: s.nodes[at : at+1]}.withNodes(func(n *node) { n.cordoned, n.down = false, false; n.heal() }).nodes[0]
	for range count {
		for i, c := range s.consumers {
			if c.kind == aDaemon && slices.Contains(c.nodes, at) {
				s.consumers[i].nodes = append(s.consumers[i].nodes, len(s.nodes))
			}
		}
		s.nodes = append(s.nodes, model)
	}
	return s, true
}

// raise raises the limit of a quota or of the queue.
func (s *scenario) raise(change map[string]any) bool {
	object, _ := change["object"].(string)
	name, _ := change["resource"].(string)
	text, _ := change["limit"].(string)
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return false
	}
	limit, name := q.Value(), strings.TrimPrefix(name, "requests.")
	if name == cpu {
		limit = q.MilliValue()
	}
	if strings.HasPrefix(object, "ClusterQueue/") {
		s.control.kueue.limits[name] = limit
		return true
	}
	if strings.HasPrefix(object, "Queue/") {
		s.control.queue.limits[name] = limit
		return true
	}
	for i, quota := range s.control.quotas {
		if object == "ResourceQuota/"+namespace+"/"+quota.name {
			s.control.quotas[i].hard = limit
		}
	}
	return strings.HasPrefix(object, "ResourceQuota/")
}
