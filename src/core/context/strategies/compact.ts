import { leftOut } from '../gap.js'
import { marker } from '../marker.js'
import type { Strategy } from '../situation.js'
import { withNote } from '../with-note.js'
import { slidingWindow } from './sliding-window.js'

/**
 * The first user message and the newest ones, with a marker in place of what was dropped. In a window that is too small
 * for that the first message goes, then the marker.
 */
export const compact: Strategy = (situation) => {
  const marked = (keepFirst: boolean) =>
    withNote(situation, { keepFirst }, (gap) => marker(leftOut(situation.messages, gap)))
  return marked(true) ?? marked(false) ?? slidingWindow(situation)
}
