import type { RecordRow } from '../protocol.js'

/** Drawn icons, because a font may lack these characters. */
const paths = {
  retry: 'M19 12a7 7 0 1 1-2.2-5.1M19 4v4h-4',
  nudge: 'M12 5v8M12 18v.5',
  block: 'M5.6 5.6l12.8 12.8M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18',
  halt: 'M6 6h12v12H6z',
  budget: 'M16 7c-1-2-7-2.5-7 1s7 2.5 7 6-6.5 3.5-8 1M12 3v18',
  resume: 'M8 5l11 7-11 7z',
  fork: 'M7 4v6c0 3 10 1 10 6v4M7 10v10',
  error: 'M6 6l12 12M18 6L6 18',
  truncated: 'M5 12h.5M12 12h.5M19 12h.5',
  wait: 'M7 4h10M7 20h10M8 4c0 5 8 6 8 8s-8 3-8 8M16 4c0 5-8 6-8 8s8 3 8 8',
  ok: 'M5 13l4.5 4.5L19 7',
  edit: 'M4 20l1-5L16 4l4 4L9 19zM14 6l4 4',
  time: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 7v5l3.5 2',
  steps: 'M5 6h14M5 12h14M5 18h9',
  pause: 'M8 5v14M16 5v14',
  first: 'M5 5v14M19 5 9 12l10 7z',
  previous: 'm15 5-7 7 7 7',
  next: 'm9 5 7 7-7 7',
  last: 'M19 5v14M5 5l10 7-10 7z',
  lanes: 'M4 6h9M8 12h12M4 18h7',
  up: 'M12 19V5M6 11l6-6 6 6',
  down: 'M12 5v14M6 13l6 6 6-6',
  good: 'M7 11v9H4v-9zM7 11l4-8c2 0 2.5 1.5 2 3.5L12.5 10H20l-2 10H7',
  bad: 'M7 13V4H4v9zM7 13l4 8c2 0 2.5-1.5 2-3.5L12.5 14H20L18 4H7',
  note: 'M5 4h14v11l-5 5H5zM14 20v-5h5',
} as const

export type IconName = keyof typeof paths

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg viewBox="0 0 24 24" width={size} height={size} aria-hidden="true" class={`drawn icon-${name}`}>
      <path d={paths[name]} />
    </svg>
  )
}

type Flag = RecordRow['flags'][number]

/** Flags by severity. The first one is shown when there is room for only one. */
export const flagWords: Record<Flag, string> = {
  halt: 'guard halted the run',
  error: 'error',
  budget: 'budget',
  block: 'guard refused a call',
  truncated: 'truncated',
  nudge: 'guard nudged the model',
  retry: 'retry',
  wait: 'waiting for a person',
  resume: 'resumed',
  fork: 'fork',
}

const gravity = Object.keys(flagWords) as Flag[]

export function sortFlags(flags: readonly Flag[]): Flag[] {
  return flags.toSorted((a, b) => gravity.indexOf(a) - gravity.indexOf(b))
}
