package prune

// Object leaves the fields out of an object that was decoded from JSON.
func (f Fields) Object(object map[string]any) {
	for name, value := range object {
		below, whole := f.find(name)
		if whole {
			delete(object, name)
		} else if below != nil {
			below.value(value)
		}
	}
}

// value leaves the fields out of an object, or of each object of a list.
func (f Fields) value(value any) {
	switch v := value.(type) {
	case map[string]any:
		f.Object(v)
	case []any:
		for _, item := range v {
			f.value(item)
		}
	}
}
