/** The address whose screen is shown; null before the first. */
let shown: string | null = null

/** The hash of the address, whose screen is shown from now on. */
export function readAddress(): string {
  shown = location.hash
  return shown
}

/** Writes what is shown into the address; unless the page is on its way to another, which this would undo. */
export function replaceAddress(hash: string): void {
  if (location.hash !== shown) return
  history.replaceState(null, '', hash)
  shown = location.hash
}
