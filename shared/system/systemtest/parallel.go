package systemtest

// OneByOne is a system.Parallel that does one thing after the other.
type OneByOne struct{}

// Do calls every step in its order.
func (OneByOne) Do(n, _ int, step func(i int)) {
	for i := range n {
		step(i)
	}
}
