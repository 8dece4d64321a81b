package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/setup/imagename"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

const (
	// operatorNotices is how long an operator may take to see a new job.
	operatorNotices = time.Minute
	// operatorSilent is after how long an operator that seems well is taken not to look at the job.
	operatorSilent = 5 * time.Minute
)

// missing finds that there is no operator, or others are the reasons why those that there are do not look at the job.
func missing(c *stage.Context, g *gang.Job, others []string) *stage.Finding {
	waited := ""
	if !c.View.Assumed {
		waited = fmt.Sprintf(", and %s has waited for %s", g.Meta.Name, phrase.Age(ageOf(c, g)))
	}
	f := stage.Found(answer.OperatorMissing, "no controller turns %ss into pods: no %s runs in this cluster%s", g.Reader.Title(), g.Reader.Controller.Name, waited).
		See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".status").
		Run(command.Kubectl("", "get", "deployments", "-A"))
	if install := component.Install(g.Reader); install != "" && len(others) == 0 {
		f.Run(install)
	}
	if f.Inferred = len(others) == 0; !f.Inferred {
		f.Message = fmt.Sprintf("no controller turns %ss like %s/%s into pods: %s", g.Reader.Title(), g.Meta.Namespace, g.Meta.Name, phrase.And(others))
	}
	for _, d := range c.View.Snap.Deployments {
		for _, container := range d.Spec.Template.Spec.Containers {
			if imagename.Base(container.Image) == "trainer-controller-manager" {
				f.Detail("%s (trainer-controller-manager) runs TrainJobs only, no %ss", c.NameOf("Deployment", d), g.Reader.Title())
			}
		}
	}
	return f
}

// unserved finds that the cluster does not serve the kind that the operator makes of a job; nil if it does, or makes none.
func unserved(c *stage.Context, job *gang.Job) *stage.Finding {
	makes, known := kinds.ByKind(job.Reader.Makes)
	if !known || c.View.Snap.Server.Resources == nil || c.View.Snap.Serves(schema.GroupResource{Group: makes.Group, Resource: makes.Resource}, makes.Kind) {
		return nil
	}
	crd := makes.Resource + "." + makes.Group
	f := stage.Found(answer.OperatorMissing, "%s is run as a %s, and the cluster does not serve these: CRD %s is not installed", nameOf(c, job), makes.Kind, crd).
		See(job.Kind.GroupVersion().String(), job.Kind.Kind, &job.Meta, ".status").Fact("crd", crd).Run(command.Kubectl("", "get", "crd", crd))
	if install := component.Install(makes); install != "" {
		f.Run(install)
	}
	return f
}

// ageOf is how long ago a job was made.
func ageOf(c *stage.Context, job *gang.Job) time.Duration {
	return c.View.Age(job.Meta.CreationTimestamp.Time)
}

// nameOf is the name of a job, with its kind where it is not the one that the answer is about.
func nameOf(c *stage.Context, job *gang.Job) string {
	if job == c.Gang.Job {
		return job.Meta.Name
	}
	return job.Kind.Kind + " " + job.Meta.Name
}

// bareName is the name of an operator, or what it is to a reader who may not know that.
func bareName(c *stage.Context, d *appsv1.Deployment) string {
	if c.Reader.Sees(d.Namespace) {
		return d.Name
	}
	return "a controller that it needs"
}

// leaderLost finds that the operator's pods look well, but none of them leads.
func leaderLost(c *stage.Context, d *appsv1.Deployment, l *coordinationv1.Lease) *stage.Finding {
	at := l.Spec.RenewTime.Time
	return stage.Found(answer.OperatorDown,
		"%s gives no sign of life: its lease was last renewed %s ago", bareName(c, d), phrase.Age(c.View.Age(at))).
		See("coordination.k8s.io/v1", "Lease", l, ".spec.renewTime").SinceTime(at).
		Detail("%s; %s: %d/%d ready", c.TitleOf("Lease", l), c.TitleOf("Deployment", d), d.Status.ReadyReplicas, component.Replicas(d)).
		Run(command.DeploymentLog(d)).Fix(component.Start(c, d))
}

func down(c *stage.Context, job *gang.Job, d *appsv1.Deployment) *stage.Finding {
	f := stage.Found(answer.OperatorDown,
		"%s is down: %d/%d pods of %s are ready, so no controller has acted on %s for %s",
		bareName(c, d), d.Status.ReadyReplicas, component.Replicas(d), c.TitleOf("Deployment", d), nameOf(c, job), phrase.Age(ageOf(c, job))).
		See("apps/v1", "Deployment", d, ".status.readyReplicas").
		Fact("ready", d.Status.ReadyReplicas).Fact("desired", component.Replicas(d))
	for _, cond := range d.Status.Conditions {
		if cond.Type == appsv1.DeploymentAvailable && cond.Status == corev1.ConditionFalse {
			f.SinceTime(cond.LastTransitionTime.Time).Detail("not available for %s", phrase.Age(c.View.Age(cond.LastTransitionTime.Time)))
		}
	}
	if component.Replicas(d) == 0 {
		return f.Detail("it is scaled to 0").Run(command.Kubectl(d.Namespace, "scale", "deployment/"+d.Name, "--replicas=1")).Fix(component.Start(c, d))
	}
	for _, line := range component.Problems(c, d) {
		f.Detail("%s", line)
	}
	return f.Run(component.Log(c.View, "deployment", d, d.Spec.Selector)).
		Run(command.Kubectl(d.Namespace, "rollout", "status", "deployment/"+d.Name)).Fix(component.Start(c, d))
}

func inactive(c *stage.Context, job *gang.Job, d *appsv1.Deployment) *stage.Finding {
	f := stage.Found(answer.OperatorDown,
		"%s runs (%s, %d/%d ready) but has not looked at %s for %s: it may not handle this kind or namespace",
		bareName(c, d), c.TitleOf("Deployment", d), d.Status.ReadyReplicas, component.Replicas(d), nameOf(c, job), phrase.Age(ageOf(c, job))).
		See("apps/v1", "Deployment", d, ".spec.template.spec.containers").
		Run(command.DeploymentLog(d))
	if u := c.View.Object(job.Kind.GroupKind(), job.Meta.Namespace, job.Meta.Name); u != nil {
		if by, field := job.Reader.Controller.ManagedBy(u); by != "" {
			f.Detail("%s is %s: the operator leaves it to that", field, by)
		}
	}
	return f
}

// Unsubmitted finds that the controller has not submitted what the members of a gang run, which are all up; nil where it has, or does not do that.
func Unsubmitted(c *stage.Context) *stage.Finding {
	g := c.Gang
	if g.Unsubmitted != gang.ByController {
		return nil
	}
	var up time.Time
	for _, p := range g.ExistingPods() {
		if _, ready := podutil.GetPodCondition(&p.Status, corev1.PodReady); ready != nil {
			up = view.Later(up, ready.LastTransitionTime.Time)
		}
	}
	if up.IsZero() {
		return nil
	}
	age := c.View.Age(up)
	operators, _ := handling(c, g.Job, component.Operators(c.View, g.Job))
	var f *stage.Finding
	switch {
	case len(operators) > 0 && component.AllDown(operators):
		f = down(c, g.Job, operators[0])
	case age <= operatorSilent:
		f = stage.Found(answer.ContainersStarting, "its members have been ready for %s, and %s is to submit to them what they run", phrase.Age(age), g.Reader.Controller.Name)
	default:
		f = stage.Found(answer.OperatorDown, "its members have been ready for %s and do nothing: %s has not submitted to them what they run", phrase.Age(age), g.Reader.Controller.Name).
			Detail("it does so when it reaches them, and has what it expects of them: its log shows which").Run(component.OperatorLog(c.View, g))
	}
	n, _ := stage.IdleDevices(g)
	return f.See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".status").SinceTime(up).Fact("idleGPUs", n)
}

// forbidden looks for refusals that are about the operator's own rights.
func forbidden(c *stage.Context, out *stage.Result) {
	for _, r := range refusal.Of(c.View, c.Gang) {
		var f *stage.Finding
		switch r.Kind {
		case refusal.Forbidden:
			f = mayNotCreate(c, r)
		case refusal.Finalizers:
			f = mayNotFinalize(c, r)
		default:
			continue
		}
		out.NoPods = true
		out.Add(f.SeeRef("v1/Event/"+c.Gang.Meta.Namespace, ".message").SinceTime(r.First))
		return
	}
}

// mayNotCreate finds that the operator may not create pods, or what they are made through, or may not do what it has to do for that. Whoever may write events may write such a
// report: a command that gives rights is offered only for the account of an operator that is seen, and for what operators do.
func mayNotCreate(c *stage.Context, r refusal.Refusal) *stage.Finding {
	verb, resource, ns := r.Verb(), r.Resource(), c.Gang.Meta.Namespace
	f := stage.Found(answer.OperatorRBAC, "the operator may not %s %s in namespace %s: %s", verb, resource, ns, r.Message).Fact("verb", verb).Fact("resource", resource)
	account, isAccount := strings.CutPrefix(r.Object, "system:serviceaccount:")
	if !isAccount || !ofOperator(c, account) || !operatorNeeds(c, verb, resource) || !strings.Contains(r.Message, fmt.Sprintf("in the namespace %q", ns)) {
		return f.Fix(refusal.Lift(c.Gang, r, answer.Admin, "let the operator do that, if it is its account that is refused", ""))
	}
	main, part, _ := strings.Cut(resource, "/")
	query := []string{"auth", "can-i", verb, main, "--as", r.Object}
	if part != "" {
		query = slices.Insert(query, 4, "--subresource="+part)
	}
	f.Fact("subject", r.Object).Run(c.Kubectl(query...))
	name, subject := "operator-"+strings.ReplaceAll(resource, "/", "-"), "--serviceaccount="+account
	do := c.Kubectl("create", "rolebinding", name, "--clusterrole=edit", subject)
	if verb != "create" || resource != "pods" && resource != "jobs.batch" { // which that role may not contain
		do = command.Then(c.Kubectl("create", "role", name, "--verb="+verb, "--resource="+resource), c.Kubectl("create", "rolebinding", name, "--role="+name, subject))
	}
	return f.Fix(refusal.Lift(c.Gang, r, answer.Admin, "let "+r.Object+" "+verb+" "+resource+" in "+ns, do))
}

// ofOperator reports whether a service account, as namespace:name, is that of an operator that is seen and makes pods of the job.
func ofOperator(c *stage.Context, account string) bool {
	of := func(d *appsv1.Deployment) bool { return accountOf(d) == account }
	return slices.ContainsFunc(component.Operators(c.View, c.Gang.Job), of) || slices.ContainsFunc(component.Operators(c.View, component.Next(c.Gang.Job)), of)
}

// accountOf is the service account of the pods of a Deployment, as namespace:name.
func accountOf(d *appsv1.Deployment) string {
	a := rbac.AccountOf(d.Namespace, &d.Spec.Template.Spec)
	return a.Namespace + ":" + a.Name
}

// operatorNeeds reports whether operators have to be allowed an access to make the pods of a job: to what they make, and to the job itself.
func operatorNeeds(c *stage.Context, verb, resource string) bool {
	if !slices.Contains([]string{"create", "patch", "update", "get", "list", "watch", "delete"}, verb) {
		return false
	}
	of := func(name, group string) string { return strings.TrimSuffix(name+"."+group, ".") }
	all := []string{"pods", "services", "configmaps", "jobs.batch"}
	for _, job := range []*gang.Job{c.Gang.Job, component.Next(c.Gang.Job)} {
		if own := of(job.Reader.Resource, job.Kind.Group); job.Reader.Resource != "" {
			all = append(all, own, own+"/finalizers", own+"/status")
		}
	}
	for _, reader := range dialect.Readers() {
		for _, kind := range reader.Kinds {
			if kind.Kind == "PodGroup" {
				all = append(all, of(kind.Resource, kind.Group))
			}
		}
	}
	return slices.Contains(all, resource)
}

// mayNotFinalize finds that the operator may not set finalizers on the owner of what it creates, as it has to where the API server protects owners from a deletion that
// others block. The message does not have the account: it is that of the operator's Deployment.
func mayNotFinalize(c *stage.Context, r refusal.Refusal) *stage.Finding {
	job := component.Next(c.Gang.Job)
	kind, name := job.Kind.GroupKind(), job.Reader.Resource
	if m := c.Gang.Maker; m != nil && name == "" { // no job owns the pods, but what makes them does
		kind, name = m.Controller.Kind, strings.ToLower(m.Controller.Kind.Kind)+"s"
	}
	owner := schema.GroupResource{Group: kind.Group, Resource: name}.String()
	resource := owner + "/finalizers"
	f := stage.Found(answer.OperatorRBAC, "the operator may not update %s in namespace %s, without which it creates nothing for a %s: %s", resource, c.Gang.Meta.Namespace, kind.Kind, r.Message)
	do, who := "", "the operator"
	for _, d := range component.Operators(c.View, job) {
		if !c.Reader.Sees(d.Namespace) {
			continue
		}
		account := accountOf(d)
		who = "system:serviceaccount:" + account
		do = command.Then(command.Kubectl("", "create", "clusterrole", name+"-finalizers", "--verb=update", "--resource="+resource),
			command.Kubectl("", "create", "clusterrolebinding", name+"-finalizers", "--clusterrole="+name+"-finalizers", "--serviceaccount="+account))
		f.Fact("subject", who).Run(c.Kubectl("auth", "can-i", "update", owner, "--subresource=finalizers", "--as", who))
		break
	}
	return f.Fix(refusal.Lift(c.Gang, r, answer.Admin, "let "+who+" update "+resource, do))
}
