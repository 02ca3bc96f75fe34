import { options } from 'preact'

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
