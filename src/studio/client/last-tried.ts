import type { WhatIf } from './what-if.js'

/** The change that was tried last, for another attempt from the comparison. */
export const lastTried: { id: string; wanted: WhatIf | null; isDue: boolean } = {
  id: '',
  wanted: null,
  isDue: false,
}
