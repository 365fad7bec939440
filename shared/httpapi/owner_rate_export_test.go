package httpapi

// OwnersRemembered is of how many owners the API remembers that they asked.
func OwnersRemembered(a *API) int {
	a.ownerRates.mutex.Lock()
	defer a.ownerRates.mutex.Unlock()
	return len(a.ownerRates.fullAt)
}
