package view

// shapes is what placement requests of one shape, or roles of one shape, have in common. Users write shapes, and what is known of one may have
// a row for each node: those of which something was found out first are forgotten.
type shapes struct {
	known map[string]map[any]any
	order []string // the oldest first
}

const (
	// knownRows is how many rows of nodes are kept of shapes, about; a shape has two matrices of some 200 bytes a node.
	knownRows = 200_000
	// leastShapes is how many shapes are kept in any cluster.
	leastShapes = 8
)

// OnceForShape returns what requests of one [PlacementRequest] Shape have in common under a key, which f finds out the first time. Only what
// is proven is kept: a search may be cut short. For a request that is like no other it is found out each time, and so it is for one whose shape
// was forgotten.
func OnceForShape[T any](w *View, shape string, key any, f func() (value T, proven bool)) T {
	if value, ok := w.shapes.known[shape][key].(T); ok {
		return value
	}
	value, proven := f()
	if proven && shape != "" {
		w.shapes.keep(shape, key, value, max(leastShapes, knownRows/max(1, len(w.Snap.Nodes))))
	}
	return value
}

// keep keeps a value, and no more than so many shapes.
func (s *shapes) keep(shape string, key, value any, most int) {
	of := s.known[shape]
	if of == nil {
		if len(s.order) >= most {
			delete(s.known, s.order[0])
			s.order = s.order[1:]
		}
		if s.known == nil {
			s.known = map[string]map[any]any{}
		}
		of = map[any]any{}
		s.known[shape], s.order = of, append(s.order, shape)
	}
	of[key] = value
}
