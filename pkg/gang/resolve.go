package gang

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Precedence is the order in which dialects count for the pods of one scheduler.
type Precedence struct {
	// Read are the dialects that the scheduler is known to read, then those that it may read.
	Read []Reader
	// Unread are the dialects that it is known not to read. They count where no other dialect does: the pod's author meant a gang.
	Unread []Reader
	// Outside reports whether a controller made a pod of the template of a member, with all its labels, for something that is no part of
	// the gang; nil knows of none.
	Outside func(*corev1.Pod) bool
}

// Readers are all dialects in their order.
func (p Precedence) Readers() []Reader { return slices.Concat(p.Read, p.Unread) }

// Reader is that of a dialect; ok is false for one that pods do not name, as that of budgets.
func (p Precedence) Reader(dialect Dialect) (reader Reader, ok bool) {
	for _, readers := range [...][]Reader{p.Read, p.Unread} {
		if i := slices.IndexFunc(readers, func(r Reader) bool { return r.Dialect == dialect }); i >= 0 {
			return readers[i], true
		}
	}
	return Reader{}, false
}

// Membership is the gangs that a pod references, in the order of the dialects.
type Membership struct {
	// Field is the gang that Kubernetes' own field names; zero without it.
	Field Key
	// Named are the gangs whose objects the pod names, Declared those that its own labels and annotations declare.
	Named, Declared []Key
	// Implied are the gangs that the pod's controller makes of its pods: they count for pods that name none.
	Implied []Key
	// Owned are the gangs whose objects the pod's job owns, where that is known: they count for pods that name none.
	Owned []Key
	// unread is the same for the dialects that the scheduler is known not to read.
	unread *Membership
	// outside is set on a pod that is in no gang, whatever it names.
	outside bool
}

// MembershipOf reads a pod.
func MembershipOf(pod *corev1.Pod, precedence Precedence) Membership {
	if precedence.Outside != nil && precedence.Outside(pod) {
		return Membership{outside: true}
	}
	m := membershipOf(pod, precedence.Read)
	if m.Field == (Key{}) {
		if unread := membershipOf(pod, precedence.Unread); !unread.empty() {
			m.unread = &unread
		}
	}
	return m
}

func membershipOf(pod *corev1.Pod, readers []Reader) Membership {
	var m Membership
	for _, r := range readers {
		name, ok := r.GroupOf(pod)
		if !ok {
			continue
		}
		key := Key{Dialect: r.Dialect, Namespace: pod.Namespace, Name: name}
		if r.Dialect == Native {
			return Membership{Field: key}
		}
		if r.Implied {
			m.Implied = append(m.Implied, key)
			continue
		}
		if len(r.Kinds) > 0 {
			m.Named = append(m.Named, key)
		}
		if r.FromPods == nil {
			continue
		}
		if _, err := r.FromPods(key, []*corev1.Pod{pod}); err == nil || len(r.Kinds) == 0 {
			m.Declared = append(m.Declared, key)
		}
	}
	return m
}

// WithOwned adds the gangs whose objects the pod's job owns.
func (m Membership) WithOwned(owned []Key, precedence Precedence) Membership {
	if m.outside {
		return m
	}
	for _, key := range owned {
		if slices.ContainsFunc(precedence.Read, func(r Reader) bool { return r.Dialect == key.Dialect }) {
			m.Owned = append(slices.Clip(m.Owned), key)
			continue
		}
		unread := Membership{}
		if m.unread != nil {
			unread = *m.unread
		}
		unread.Owned = append(slices.Clip(unread.Owned), key)
		m.unread = &unread
	}
	return m
}

func (m Membership) empty() bool {
	return m.Field == (Key{}) && len(m.Named)+len(m.Declared)+len(m.Implied) == 0
}

// Keys are all gangs that the pod may be in.
func (m Membership) Keys() []Key {
	if m.Field != (Key{}) {
		return []Key{m.Field}
	}
	keys := slices.Clone(m.Named)
	for _, key := range m.Declared {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if m.unread != nil {
		keys = append(keys, m.unread.Keys()...)
	}
	return append(keys, m.Implied...)
}

// Resolve returns the gang that counts. In this order:
//
//   - that of Kubernetes' own field;
//   - one whose object exists, of a dialect that the pod's scheduler reads, or may read;
//   - one that labels and annotations declare by themselves;
//   - one whose object the pod's job owns, for a pod that names none;
//   - one whose object exists, of a dialect that the scheduler is known not to read: another one may have its name;
//   - one whose object is missing yet;
//   - one that the pod's controller makes of its pods.
//
// It depends on which objects there are, so it may change. ok is false for a pod that names no gang. This is the one precedence of
// dialects: the scheduler, the explanation and every command resolve by it.
func (m Membership) Resolve(exists func(Key) bool) (key Key, ok bool) {
	if key, ok = m.stated(exists); ok {
		return key, true
	}
	return m.implied()
}

// stated is the gang that counts of those that the pod's author or an object states.
func (m Membership) stated(exists func(Key) bool) (key Key, ok bool) {
	if m.Field != (Key{}) {
		return m.Field, true
	}
	if i := slices.IndexFunc(m.Named, exists); i >= 0 {
		return m.Named[i], true
	}
	if len(m.Declared) > 0 {
		return m.Declared[0], true
	}
	if len(m.Named) == 0 && len(m.Owned) > 0 {
		return m.Owned[0], true
	}
	if m.unread == nil {
		return first(m.Named)
	}
	if i := slices.IndexFunc(m.unread.Named, exists); i >= 0 || len(m.Named) == 0 {
		return m.unread.stated(exists)
	}
	return first(m.Named)
}

// implied is the gang that counts of those that the pod's controller makes.
func (m Membership) implied() (key Key, ok bool) {
	if key, ok = first(m.Implied); !ok && m.unread != nil {
		return m.unread.implied()
	}
	return key, ok
}

func first(keys []Key) (Key, bool) {
	if len(keys) == 0 {
		return Key{}, false
	}
	return keys[0], true
}
