import { options } from 'preact'
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'

let shown: string | null = null

/** A new object for each navigation, because `replaceAddress` may have changed the address in the meantime. */
export function useAddressHash(): { hash: string } {
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
  return state
}

/** Does nothing if the page is already navigating to another address. */
export function replaceAddress(hash: string): void {
  if (location.hash !== shown) return
  history.replaceState(null, '', hash)
  shown = location.hash
}

/** Without a delay, nothing happens. A change of `inputs` starts the delay again. */
export function useTimeout(ms: number | null, act: () => void, inputs: readonly unknown[]): void {
  useEffect(() => {
    if (ms === null) return undefined
    const timer = setTimeout(act, ms)
    return () => clearTimeout(timer)
  }, inputs)
}

export function useWrittenAddress(hash: string | null): void {
  // This is a layout effect. Other effects of the old screen end only after the next screen has rendered, and they
  // would overwrite the next screen's address.
  useLayoutEffect(() => {
    if (hash === null) return undefined
    // Debounced, because typing and the slider change the address often.
    const timer = setTimeout(() => replaceAddress(hash), 250)
    return () => clearTimeout(timer)
  }, [hash])
}

export function showControls(text: string): string {
  return text.replaceAll(
    unseen,
    (sign) => `⟨U+${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`,
  )
}

const unseen = /[^\P{Cc}\t\n\r]|[\u202a-\u202e\u2066-\u2069]/gu

const shownAttributes = 'title alt aria-label aria-valuetext'.split(' ')

/** Models, tools and users can write titles, tags and tool names, so `showControls` applies to all text. */
export function showControlsEverywhere(): void {
  options.vnode = (vnode) => {
    const node = vnode as { props: string | Record<string, string> }
    const { props } = node
    if (typeof props === 'string') node.props = showControls(props)
    else for (const name of shownAttributes) if (props[name]) props[name] = showControls(props[name])
  }
}

const focusable = 'main, section, article, form, dialog, [role=group], [tabindex]'

/** Restores a lost focus, or else focuses the nearest part that contained the control, or the next screen. */
export function keepFocus(): void {
  let path: readonly Element[] = []
  addEventListener('focusin', (event) => {
    path = event.composedPath().filter((one) => one instanceof Element)
  })
  // A click on the page removes the focus on purpose.
  addEventListener('pointerdown', () => (path = []), true)
  const restore = (): void => {
    const [focused] = path
    const { activeElement } = document
    const isHeld = activeElement !== null && activeElement !== document.body
    if (!focused || (isHeld && !activeElement.matches(':disabled'))) return
    const parts = path.filter((one, at) => one.isConnected && (at === 0 || one.matches(focusable)))
    for (const part of [...parts, document.querySelector('main')]) {
      if (!(part instanceof HTMLElement)) continue
      if (part !== focused && !part.hasAttribute('tabindex')) part.tabIndex = -1
      part.focus({ preventScroll: true })
      if (document.activeElement === part && !part.matches(':disabled')) return
    }
  }
  const observer = new MutationObserver(restore)
  observer.observe(document.body, { childList: true, subtree: true, attributeFilter: ['disabled'] })
}
