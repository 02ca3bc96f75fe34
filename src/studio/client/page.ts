import { options } from 'preact'
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'

/** The address whose screen is shown; null before the first. */
let shown: string | null = null

/** The hash of the address, to show its screen. */
export function useAddressHash(): string {
  // An object: going where the page was shows it anew, after `replaceAddress`, too.
  const [state, setState] = useState(() => ({ hash: location.hash }))
  useLayoutEffect(() => {
    shown = state.hash
  }, [state])
  useEffect(() => {
    const listen = (): void => setState({ hash: location.hash })
    addEventListener('hashchange', listen)
    // The hash may have changed before the listener was added.
    if (location.hash !== shown) listen()
    return () => removeEventListener('hashchange', listen)
  }, [])
  return state.hash
}

/** Writes what is shown into the address; unless the page is on its way to another one, which this would undo. */
export function replaceAddress(hash: string): void {
  if (location.hash !== shown) return
  history.replaceState(null, '', hash)
  shown = location.hash
}

/** Writes what a screen shows into the address, so that it can be shared, and the way back leads to it. Null: nothing is written. */
export function useWrittenAddress(hash: string | null): void {
  // In a layout effect: the others of a screen end only after the next one is there, and this would write over its address.
  useLayoutEffect(() => {
    if (hash === null) return undefined
    // Delayed, because typing and a moving slider change it often.
    const timer = setTimeout(() => replaceAddress(hash), 250)
    return () => clearTimeout(timer)
  }, [hash])
}

/** Makes signs visible that would move the cursor of a terminal, or turn the order of letters around. */
export function showControls(text: string): string {
  return text.replaceAll(
    unseen,
    (sign) => `⟨U+${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`,
  )
}

const unseen = /[^\P{Cc}\t\n\r]|[\u202a-\u202e\u2066-\u2069]/gu

/** Attributes that are shown or read out. */
const told = 'title alt aria-label aria-valuetext'.split(' ')

/** Shows them in all that the page says, whether a model, a tool or a user has written it: a title, a tag, a tool's name. */
export function showControlsEverywhere(): void {
  options.vnode = (vnode) => {
    const node = vnode as { props: string | Record<string, string> }
    const { props } = node
    if (typeof props === 'string') node.props = showControls(props)
    else for (const name of told) if (props[name]) props[name] = showControls(props[name])
  }
}
