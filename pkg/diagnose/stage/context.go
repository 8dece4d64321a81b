// Package stage is what the stages of a diagnosis share: the Context that each is given, the Result that each returns, and the
// findings in it. It is pure.
package stage

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// Context is what a stage evaluates. A stage only reads it: what later stages need of a stage is in its Result, and reaches them
// by [Context.With].
type Context struct {
	// Naming has the cluster, and whom the findings are written for.
	Naming
	// Gang is the gang in the cluster.
	Gang *gang.Gang
	// Request is the placement that the members without a node need.
	Request view.PlacementRequest
	// Findings are those of the stages before.
	Findings []Finding
	// Missing are the rights that the stages before would have needed.
	Missing []answer.Right
	// Unmodelled is what the gang specifies and none of the stages before evaluates.
	Unmodelled []string
	// NoPods is true once a stage has found why pods are missing: their absence needs no further reason.
	NoPods bool
	// Refused is how many members that the gang can do without are not made, as a stage before has found.
	Refused int64
	// Placement is what the search found on the cluster as it is; nil before the placement stage, and where nothing was searched.
	Placement *placement.Result
	// Matrices are the constraints of every node, by role of the Request.
	Matrices map[string]placement.Matrix
	// Unreadable are constraints that no placement can be held to, because the objects behind them may not be read.
	Unreadable placement.Constraints
	// Diagnose diagnoses another gang on behalf of this one. It is nil once that went deep enough.
	Diagnose func(*gang.Job) *Diagnosis

	tools   Tools
	cluster *placement.Cluster                      // that of the View, without pods of the gang that are leaving
	causes  map[*placement.Cluster]placement.Causes // by the cluster; of this Request alone
	cut     *bool                                   // of the whole diagnosis
	others  *others
	request map[any]any // what is known of the Request, see onceForRequest
}

// Tools are what a diagnosis computes with, within its time.
type Tools struct {
	Search Search
	// Causes finds why a gang, held to all but some constraints, has no placement on a cluster.
	Causes func(cluster *placement.Cluster, g placement.Gang, ignore placement.Constraints) placement.Causes
	// Matrix holds every constraint of every node for one pod.
	Matrix func(*placement.Cluster, *corev1.Pod) placement.Matrix
	// Lacking measures the room for the role of a gang that is hardest to place, MainRoom that for a role of what people choose its nodes by,
	// and CauseRoom that for a cause; ok is false for a cause that is no resource.
	Lacking   func(*placement.Cluster, placement.Gang, placement.Result) placement.Room
	MainRoom  func(*placement.Cluster, placement.Gang, placement.Role) placement.Room
	CauseRoom func(cluster *placement.Cluster, g placement.Gang, causes placement.Causes, cause placement.Cause) (r placement.Room, ok bool)
	// Devices counts those that the resource claims of some roles are for; nil if there is no such number.
	Devices func(*placement.Cluster, []placement.Role) []placement.DeviceCount
	// Domains measures the room for a gang in each domain of a node label.
	Domains func(cluster *placement.Cluster, g placement.Gang, key string) []placement.DomainRoom
}

// Search looks for a placement of a gang on a cluster, held to all but some constraints.
type Search func(cluster *placement.Cluster, g placement.Gang, ignore placement.Constraints) placement.Result

// NewContext returns the context of the first stage.
func NewContext(v *view.View, g *gang.Gang, reader audience.Reader, tools Tools, diagnose func(*gang.Job) *Diagnosis) *Context {
	return &Context{
		Naming: Naming{View: v, Reader: reader}, Gang: g, Request: v.PlacementRequest(g), tools: tools, Diagnose: diagnose, cluster: v.Without(v.Leaving(g)),
		causes: map[*placement.Cluster]placement.Causes{}, cut: new(bool), others: &others{}, request: map[any]any{},
	}
}

// With returns the context of the next stage, which knows the result of the one before.
func (c *Context) With(r Result) *Context {
	next := *c
	next.causes = map[*placement.Cluster]placement.Causes{}
	next.Findings = slices.Concat(c.Findings, r.Findings)
	next.Missing = slices.Concat(c.Missing, r.Missing)
	next.Unmodelled = slices.Concat(c.Unmodelled, r.Unmodelled)
	next.NoPods = c.NoPods || r.NoPods
	next.Refused = max(c.Refused, r.Refused)
	if r.Placement != nil {
		next.Placement = r.Placement
	}
	if r.Matrices != nil {
		next.Matrices = r.Matrices
	}
	if r.Unreadable != nil {
		next.Unreadable = r.Unreadable
	}
	if len(r.Injected) > 0 {
		next.Request, next.request = injected(c.Request, r.Injected), map[any]any{}
	}
	return &next
}

// For returns the context of another placement request of the same gang, whose Shape is that of requests like it.
func (c *Context) For(request view.PlacementRequest) *Context {
	other := *c
	other.causes = map[*placement.Cluster]placement.Causes{}
	other.Request, other.request = request, map[any]any{}
	return &other
}

// On returns the context of the same gang in a cluster in which something is different, such as nodes that are not there yet.
func (c *Context) On(v *view.View) *Context {
	other := c.For(c.Request)
	other.View, other.cluster, other.others = v, v.Without(v.Leaving(c.Gang)), &others{}
	now := other.Fit(other.cluster, nil)
	other.Placement, other.Matrices = &now, make(map[string]placement.Matrix, len(c.Request.Roles))
	for _, r := range c.Request.Roles {
		other.Matrices[r.Name] = other.Matrix(r)
	}
	return other
}

// injected is a request whose members have what admission adds to their pods.
func injected(request view.PlacementRequest, byRole map[string]cohort.Injected) view.PlacementRequest {
	request.Roles = slices.Clone(request.Roles)
	added := ""
	for i := range request.Roles {
		r := &request.Roles[i]
		adds := byRole[phrase.Role(r.Name)]
		if len(adds.NodeLabels) == 0 && len(adds.Tolerations) == 0 {
			continue
		}
		r.Pod = r.Pod.DeepCopy()
		if r.Pod.Spec.NodeSelector == nil {
			r.Pod.Spec.NodeSelector = map[string]string{}
		}
		maps.Copy(r.Pod.Spec.NodeSelector, adds.NodeLabels)
		r.Pod.Spec.Tolerations = append(r.Pod.Spec.Tolerations, adds.Tolerations...)
		added += fmt.Sprintf("\n%q: %q", r.Name, adds.NodeLabels)
		for _, t := range adds.Tolerations {
			added += fmt.Sprintf(" %q", []string{t.Key, string(t.Operator), t.Value, string(t.Effect), fmt.Sprint(ptr.Deref(t.TolerationSeconds, -1))})
		}
	}
	return request.With(added)
}

// Cluster is the cluster as it is for the gang: the room of its own members that are leaving is free for their successors, which are made after that.
func (c *Context) Cluster() *placement.Cluster { return c.cluster }

// Has reports whether a stage before has found one of the codes.
func (c *Context) Has(codes ...answer.Code) bool { return has(c.Findings, codes) }

// Search looks for a placement of a gang on a cluster, without some constraints and without those that are unreadable.
func (c *Context) Search(cluster *placement.Cluster, g placement.Gang, ignore placement.Constraints) placement.Result {
	return c.tools.Search(cluster, g, c.Unreadable.Union(ignore))
}

// Fit looks for a placement of this gang on a cluster, without some constraints. Gangs of one shape find the same on clusters that many
// look at.
func (c *Context) Fit(cluster *placement.Cluster, ignore placement.Constraints) placement.Result {
	ignored := c.Unreadable.Union(ignore)
	type fit struct {
		cluster *placement.Cluster
		ignored string
	}
	search := func(on *placement.Cluster) func() (placement.Result, bool) {
		return func() (placement.Result, bool) {
			r := c.Search(on, c.Request.Gang, ignore)
			return r, r.Fits() || r.Impossible()
		}
	}
	same := c.same(cluster, ignored)
	if same == nil {
		if r, ok := c.fitBesides(cluster, ignore); ok {
			return r
		}
		return onceForRequest(c, fit{cluster, fmt.Sprint(sets.List(ignored))}, search(cluster))
	}
	return OnceForShape(c, fit{same, fmt.Sprint(sets.List(ignored))}, search(same))
}

// OnceForShape is [view.OnceForShape] for the request. For one that is like no other it is found out once for the gang.
func OnceForShape[T any](c *Context, key any, f func() (value T, proven bool)) T {
	if c.Request.Shape == "" {
		return onceForRequest(c, key, f)
	}
	return view.OnceForShape(c.View, c.Request.Shape, key, f)
}

// onceForRequest returns what is known of the request of this gang alone under a key, which f finds out the first time.
func onceForRequest[T any](c *Context, key any, f func() (value T, proven bool)) T {
	if value, ok := c.request[key].(T); ok {
		return value
	}
	value, proven := f()
	if proven {
		c.request[key] = value
	}
	return value
}

// Causes are why this gang has no placement on a cluster. Like a fit, gangs of one shape have them in common.
func (c *Context) Causes(cluster *placement.Cluster) placement.Causes {
	known, ok := c.causes[cluster]
	if ok {
		return known
	}
	find := func(on *placement.Cluster) (placement.Causes, bool) {
		found := c.tools.Causes(on, c.Request.Gang, c.Unreadable)
		return found, !found.Cut
	}
	if same := c.same(cluster, c.Unreadable.Union(liftable())); same != nil {
		type causesOn struct {
			cluster *placement.Cluster
			ignored string
		}
		known = OnceForShape(c, causesOn{same, fmt.Sprint(sets.List(c.Unreadable))}, func() (placement.Causes, bool) { return find(same) })
	} else {
		known, _ = find(cluster)
	}
	c.causes[cluster] = known
	*c.cut = *c.cut || known.Cut
	return known
}

// Cut reports whether the time ended before all causes were found that a stage looked for.
func (c *Context) Cut() bool { return *c.cut }

// Matrix is the constraints of every node for one role of the request. It is equal for roles of one shape.
func (c *Context) Matrix(role placement.Role) placement.Matrix {
	return c.MatrixOn(c.Cluster(), role)
}

// MatrixOn is Matrix on another cluster.
func (c *Context) MatrixOn(cluster *placement.Cluster, role placement.Role) placement.Matrix {
	return onceForRole(c, cluster, role, "matrix", func() (placement.Matrix, bool) {
		if from, _ := cluster.Derived(); from != nil && !c.View.IsCommon(cluster) && c.View.IsCommon(from) && c.Request.RoleShape(role.Name) != "" {
			if m, ok := cluster.MatrixLike(c.MatrixOn(from, role), role.Pod); ok {
				return m, m.Decided()
			}
		}
		m := c.tools.Matrix(cluster, role.Pod)
		return m, m.Decided()
	})
}

// OnceForRole returns what members of one role find on nodes of a cluster that they may use, which f finds out: once for all roles of one shape where the cluster is
// common, or one on which they find the same as there, if it is proven.
func OnceForRole[T any](c *Context, cluster *placement.Cluster, role placement.Role, what string, f func() (value T, proven bool)) T {
	return onceForRole(c, c.same(cluster, c.Unreadable.Union(liftable())), role, what, f)
}

func onceForRole[T any](c *Context, same *placement.Cluster, role placement.Role, what string, f func() (value T, proven bool)) T {
	if same == nil {
		value, _ := f()
		return value
	}
	type found struct {
		cluster *placement.Cluster
		what    string
		role    *corev1.Pod // nil for roles of one shape
	}
	if shape := c.Request.RoleShape(role.Name); shape != "" && c.View.IsCommon(same) {
		return view.OnceForShape(c.View, shape, found{same, what, nil}, f)
	}
	return onceForRequest(c, found{same, what, role.Pod}, f)
}

// Fitted reads like 1/2: members that have or would find a node.
func (c *Context) Fitted() string {
	n := c.Gang.Count(gang.Succeeded)
	if c.Placement != nil {
		n += c.Placed(*c.Placement)
	} else {
		n += int32(len(c.Request.Bound))
	}
	return phrase.Fraction(n, c.Gang.Total()+int32(len(c.View.Unreplaced(c.Gang))))
}

// Placed is how many members have a node, or find one by a placement.
func (c *Context) Placed(r placement.Result) int32 {
	n := int32(len(c.Request.Bound))
	for _, placed := range r.Placed {
		n += placed
	}
	return n
}

// Kubectl is a kubectl command in the namespace of the gang.
func (c *Context) Kubectl(args ...string) string {
	return command.Kubectl(c.Gang.Meta.Namespace, args...)
}
