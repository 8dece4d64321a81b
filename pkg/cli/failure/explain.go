package failure

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pathDenial is the message of the API server's authorizer for a refused path that is no resource.
var pathDenial = regexp.MustCompile(`User "[^"]*" cannot \S+ path "`)

// explain fills in the message and hint for what API servers and the network answer.
func explain(e *Error, op *opError) {
	switch {
	case NotServed(op.err) && op.op.always():
		e.Message = op.prefix() + "what answers is no Kubernetes API server: it does not know what each of them serves (404)"
		e.Hint = "check the server address of your context, its port and its path: kubectl config view --minify"
	case meta.IsNoMatchError(op.err), NotServed(op.err):
		e.Message = op.prefix() + "the cluster does not serve " + op.op.served()
		e.Hint = installHint(op.op)
	case noCredentials(op.err) != "":
		e.Message = op.prefix() + "cannot get credentials: " + noCredentials(op.err)
		e.Hint = "log in to the cluster again; the program that gets the credentials is that of the user of your context: kubectl config view --minify"
	case apierrors.IsUnauthorized(op.err):
		e.Message = op.prefix() + "the API server does not accept your credentials (401 Unauthorized)"
		e.Hint = "log in to the cluster again, or look at the user of your context: kubectl config view --minify"
	case apierrors.IsForbidden(op.err):
		e.lacks = rulesOf(op)
		e.Hint = e.lacks.hint()
		if e.Hint == "" {
			e.Hint = refusalHint(op)
		}
		if e.Hint == "" && pathDenial.MatchString(op.err.Error()) {
			e.Hint = "ask an administrator to bind the ClusterRole system:public-info-viewer to you, as Kubernetes does for everybody"
		}
	case refusalHint(op) != "":
		e.Hint = refusalHint(op)
	case OutcomeOf(op.err) == OutcomeUntried:
		e.Hint = "nothing can be tried while that webhook takes no dry runs: ask who runs it to declare sideEffects None or NoneOnDryRun in its configuration, or do it without a dry run"
	case NamespaceMissing(op.err):
		e.Hint = "choose another namespace with -n, or create it: kubectl create namespace " + op.op.Namespace
	case apierrors.IsNotFound(op.err) && op.op.Name != "":
		e.Message = op.prefix() + "not found"
	case apierrors.IsConflict(op.err):
		e.Hint = "another client has changed it meanwhile: run the command again"
	case inTrouble(op.err):
		e.Hint = "the API server has trouble answering: try again, and see kubectl get --raw '/readyz?verbose'"
	default:
		explainNetwork(e, op)
	}
}

// refused recognises what keeps an API server from accepting an object that it evaluated, by its messages: a quota, a policy, a webhook, or the end of the
// namespace.
var refused = regexp.MustCompile(`(?:exceeded quota: |failed quota: )([a-z0-9.-]+)|ValidatingAdmissionPolicy '([a-z0-9.-]+)'|admission webhook "([a-z0-9.-]+)" denied|(because it is being terminated)`)

// unstated recognises a quota that makes a request or a limit mandatory.
var unstated = regexp.MustCompile(`failed quota: ([a-z0-9.-]+): must specify .*\b(?:cpu|memory)\b`)

// unstatedHint is what can be done about requests and limits that a quota makes mandatory; empty for another error.
func unstatedHint(op Op, message string) string {
	by := unstated.FindStringSubmatch(message)
	if by == nil || op.Namespace == "" {
		return ""
	}
	var flags []string
	for _, name := range []string{"cpu", "memory"} {
		if strings.Contains(by[0], name) {
			flags = append(flags, "--"+name)
		}
	}
	return fmt.Sprintf("state it: of a job, gangctl submit sets the request and the limit with %s; or ask an administrator for a LimitRange with defaults: kubectl -n %s describe resourcequota %s", strings.Join(flags, " and "), op.Namespace, by[1])
}

// refusalHint is what can be done about a refusal that is not about rights; empty for another error.
func refusalHint(op *opError) string {
	answer, _ := status(op.err)
	if hint := unstatedHint(op.op, answer.Message); hint != "" {
		return hint
	}
	by := refused.FindStringSubmatch(answer.Message)
	switch {
	case by == nil:
		return ""
	case by[1] != "" && op.op.Namespace != "":
		return fmt.Sprintf("see what it allows and what is used of it: kubectl -n %s describe resourcequota %s; use less, or ask an administrator for more", op.op.Namespace, by[1])
	case by[2] != "":
		return fmt.Sprintf("it is a rule of this cluster: change what it refuses, or ask an administrator, who can show it: kubectl get validatingadmissionpolicy %s -o yaml", by[2])
	case by[3] != "":
		return fmt.Sprintf("it is a rule of this cluster: change what it refuses, or ask who runs the webhook %s", by[3])
	case by[4] != "":
		return "the namespace is being deleted: choose another one with -n"
	}
	return "" // a quota of a namespace that is not known here
}

// Unauthenticated reports whether a request failed because the API server does not know who makes it: it does not accept the credentials, or the
// program that gets them failed, and the request was not sent. That does not pass by itself.
func Unauthenticated(err error) bool {
	return apierrors.IsUnauthorized(err) || noCredentials(err) != ""
}

// Unanswered reports whether a request failed that no API server answered, or that had no login: any other request would fail alike.
func Unanswered(err error) bool {
	var request *url.Error
	return errors.As(err, &request) || Unauthenticated(err)
}

// noCredentials is why the program that a kubeconfig names got no credentials; empty if that is not why a request failed. client-go reports it in
// words alone.
func noCredentials(err error) string {
	var request *url.Error
	if !errors.As(err, &request) || request.Err == nil {
		return ""
	}
	why, ok := strings.CutPrefix(request.Err.Error(), "getting credentials: ")
	if !ok {
		return ""
	}
	return why
}

// inTrouble reports whether an API server answered that it cannot answer now.
func inTrouble(err error) bool {
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
}

// Transient reports whether a request that failed may well succeed when it is made again: the API server has trouble answering, or the connection
// to it was lost. A certificate that is not trusted, an address that is wrong, or a login that has ended, stays so.
func Transient(err error) bool {
	if inTrouble(err) {
		return true
	}
	if Unauthenticated(err) {
		return false
	}
	var request *url.Error
	return errors.As(err, &request) && !errors.Is(err, context.Canceled) && !misled(err)
}

const moreTime = "try again, or allow more time with --request-timeout 60s"

func explainNetwork(e *Error, op *opError) {
	var request *url.Error
	if !errors.As(op.err, &request) {
		explainBody(e, op)
		return
	}
	server := request.URL
	if u, err := url.Parse(request.URL); err == nil {
		server = u.Scheme + "://" + u.Host
	}
	var dial *net.OpError
	var dns *net.DNSError
	var expired x509.CertificateInvalidError
	var wrongHost x509.HostnameError
	switch {
	case errors.As(op.err, &expired) && expired.Reason == x509.Expired:
		e.Message = fmt.Sprintf("%sthe certificate of the API server at %s has expired, or is not valid yet: %v", op.prefix(), server, request.Err)
		e.Hint = "whoever runs the cluster renews it; check the clock of this machine first"
	case errors.As(op.err, &wrongHost):
		e.Message = fmt.Sprintf("%sthe certificate of the API server at %s is for another name: %v", op.prefix(), server, request.Err)
		e.Hint = "use an address that it names, or pass --tls-server-name NAME with one of its names: kubectl config view --minify"
	case distrusted(op.err):
		e.Message = fmt.Sprintf("%sthe certificate of the API server at %s is not trusted: %v", op.prefix(), server, request.Err)
		e.Hint = "check certificate-authority in your kubeconfig, or pass --certificate-authority FILE"
	case errors.As(op.err, &dns), errors.As(op.err, &dial) && dial.Op == "dial":
		e.Message = fmt.Sprintf("%scannot reach the API server at %s: %v", op.prefix(), server, request.Err)
		e.Hint = "check that the cluster is up and that its address is right, which your context has, or --server: kubectl config get-contexts"
	case request.Timeout():
		e.Message = fmt.Sprintf("%sno answer from the API server at %s in time: %v", op.prefix(), server, request.Err)
		e.Hint = moreTime
	default:
		e.Message = fmt.Sprintf("%sthe connection to the API server at %s failed: %v", op.prefix(), server, request.Err)
		e.Hint = "try again; if it persists, check the server address of your context: kubectl config view --minify"
	}
}

// explainBody fills in the message and hint for an answer that has begun, and cannot be read.
func explainBody(e *Error, op *opError) {
	var late net.Error
	var syntax *json.SyntaxError
	switch {
	case op.op.Verb == "": // it may be no answer at all
	case errors.As(op.err, &late) && late.Timeout():
		e.Message = op.prefix() + "the API server did not complete its answer in time"
		e.Hint = moreTime
	case errors.As(op.err, &syntax), errors.Is(op.err, io.ErrUnexpectedEOF):
		e.Hint = "try again; if it persists, a proxy or its login page may answer in place of the API server: check the address of your context: kubectl config view --minify"
	}
}

// NotServed reports whether a request failed because the cluster does not have its resource, as opposed to the object: only that 404 names one.
func NotServed(err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	status, ok := status(err)
	return ok && (status.Details == nil || status.Details.Name == "")
}

// NamespaceMissing reports whether a request failed because its namespace is not there.
func NamespaceMissing(err error) bool {
	status, ok := status(err)
	return ok && apierrors.IsNotFound(err) && status.Details != nil && status.Details.Kind == "namespaces"
}

func status(err error) (metav1.Status, bool) {
	var s apierrors.APIStatus
	if !errors.As(err, &s) {
		return metav1.Status{}, false
	}
	return s.Status(), true
}
