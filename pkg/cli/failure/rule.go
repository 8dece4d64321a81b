package failure

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// rbacDenial is the message of the API server's authorizer for a refusal. Other 403s (quota, admission) are not about rights.
var rbacDenial = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]*)"`)

// rules are the RBAC rules that a user lacks, in the terms of the requests that need them.
type rules struct {
	user string // empty if that is not known
	ops  []Op
}

// rulesOf is the rule that would have allowed a request. It is empty for a refusal that is not about rights, such as an exceeded quota.
func rulesOf(op *opError) rules {
	s, ok := status(op.err)
	if !ok || op.op.Verb == "" {
		return rules{}
	}
	m := rbacDenial.FindStringSubmatch(s.Message)
	if m == nil {
		return rules{}
	}
	needed := op.op
	needed.Verb = m[2]
	return rules{user: m[1], ops: []Op{needed}}
}

// LacksRights reports whether an error is one of rights that its hint requests from an administrator.
func (e *Error) LacksRights() bool { return len(e.lacks.ops) > 0 }

// Denied is the failure of a request for want of a right, of which only the server's message is known.
func Denied(op Op, message string) *Error {
	e := Errorf("%s %s: %s", op.Verb, op.scope(), message)
	if m := rbacDenial.FindStringSubmatch(message); m != nil {
		e.lacks.user = m[1]
	}
	return e.needing(op)
}

// Needing adds to a refusal for want of a right what else the command needs, so that one request to an administrator is enough. Any other error is
// returned as it is.
func Needing(err error, ops ...Op) error {
	e := From(err)
	if e == nil || len(e.lacks.ops) == 0 {
		return err
	}
	return e.needing(ops...)
}

// Lacking adds to an error the rules for other requests that were refused, because of which it may have come to it.
func Lacking(err error, refused ...error) error {
	for _, r := range refused {
		if why := From(r); len(why.lacks.ops) > 0 {
			e := From(err)
			e.lacks.user = cmp.Or(e.lacks.user, why.lacks.user)
			err = e.needing(why.lacks.ops...)
		}
	}
	return err
}

// NeedingVerb is Needing for further requests for what was refused: a job that may not be read may not be changed, either.
func NeedingVerb(err error, verb string) error {
	e := From(err)
	if e == nil {
		return nil
	}
	more := slices.Clone(e.lacks.ops)
	for i := range more {
		more[i].Verb = verb
	}
	return Needing(err, more...)
}

// needing is a copy of a refusal with more rules in its hint.
func (e *Error) needing(ops ...Op) *Error {
	c := *e
	c.lacks = c.lacks.with(ops...)
	c.Hint = c.lacks.hint()
	return &c
}

// with are the rules with those for more requests.
func (r rules) with(ops ...Op) rules {
	r.ops = slices.Clone(r.ops)
	for _, op := range ops {
		if op.Verb != "" && !slices.ContainsFunc(r.ops, func(known Op) bool { return known.rule() == op.rule() }) {
			r.ops = append(r.ops, op)
		}
	}
	return r
}

// hint is what to send to an administrator: the rules by where they are bound, and by API group and verb.
func (r rules) hint() string {
	if len(r.ops) == 0 {
		return ""
	}
	bound := ""
	if r.user != "" {
		bound = fmt.Sprintf(", bound to user %q", r.user)
	}
	var places []string
	for _, op := range r.ops {
		if place := op.binding(); !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	var b strings.Builder
	for i, place := range places {
		entries := r.in(place)
		what := "this rule"
		if len(entries) > 1 {
			what = "these rules"
		}
		if i == 0 {
			b.WriteString("ask an administrator for ")
		} else {
			b.WriteString("\nand for ")
		}
		fmt.Fprintf(&b, "%s in %s%s:%s", what, place, bound, strings.Join(entries, ""))
	}
	return b.String()
}

// in are the rules of one binding, as YAML.
func (r rules) in(place string) []string {
	type shared struct{ group, verb string }
	var order []shared
	resources := map[shared][]string{}
	for _, op := range r.ops {
		if op.binding() != place {
			continue
		}
		of := shared{op.Resource.Group, op.Verb}
		if resources[of] == nil {
			order = append(order, of)
		}
		resources[of] = append(resources[of], fmt.Sprintf("%q", op.Resource.Resource))
	}
	var entries []string
	for _, of := range order {
		entries = append(entries, fmt.Sprintf("\n  - apiGroups: [%q]\n    resources: [%s]\n    verbs: [%q]", of.group, strings.Join(resources[of], ", "), of.verb))
	}
	return entries
}

// rule is what makes two requests need the same rule.
func (o Op) rule() [4]string {
	return [4]string{o.Namespace, o.Resource.Group, o.Resource.Resource, o.Verb}
}

// binding is where the rule for a request goes.
func (o Op) binding() string {
	if o.Namespace == "" {
		return "a ClusterRole"
	}
	return "a Role in namespace " + o.Namespace
}

// scope names the resource of a request over a collection, and where it is.
func (o Op) scope() string {
	if o.Namespace == "" {
		return o.Resource.GroupResource().String() + " in all namespaces"
	}
	return o.Resource.GroupResource().String() + " in namespace " + o.Namespace
}
