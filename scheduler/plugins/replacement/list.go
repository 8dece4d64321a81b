package replacement

// List returns the places that were held when it was last looked, in no order.
// Unlike Held it may be called from any goroutine.
func (l *Ledger) List() []Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	var holds []Hold
	for _, slots := range l.loose {
		for _, s := range slots {
			if s.held && !s.lost.IsZero() {
				holds = append(holds, Hold{Group: s.group, Member: s.name, Node: s.node, Until: s.lost.Add(l.ttlOf(s))})
			}
		}
	}
	return holds
}
