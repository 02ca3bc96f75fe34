import type { Tone } from './look.js'

/** The light theme, which holds wherever styles are not read; `theme.ts` has the dark one. No two are the same. */
export const palette = {
  page: '#ffffff',
  card: '#fefefe',
  text: '#1f2328',
  quiet: '#59636e',
  line: '#848d97',
  /** Of what is not to stand out. */
  rule: '#c6cdd5',
  main: '#0969da',
  /** Fills of compound states, by depth. */
  areas: ['#f4f7fb', '#e9eff6', '#dfe7f1'],
  taken: '#1a7f37',
  missed: '#cf222e',
  missedFill: '#ffe6e3',
} as const

export const toneColors: Readonly<Record<Tone, { fill: string; line: string }>> = {
  success: { fill: '#dafbe1', line: '#1a7f37' },
  limit: { fill: '#fff3d1', line: '#9a6700' },
  error: { fill: '#ffe6e3', line: '#cf222e' },
  neutral: { fill: '#eef1f4', line: '#59636e' },
}

/** What each colour becomes on a dark page. */
const dark: Readonly<Record<string, string>> = {
  [palette.page]: '#0d1117',
  [palette.card]: '#161b22',
  [palette.text]: '#e6edf3',
  [palette.quiet]: '#9da7b3',
  [palette.line]: '#6e7681',
  [palette.rule]: '#3a424c',
  [palette.main]: '#58a6ff',
  [palette.areas[0]]: '#10161f',
  [palette.areas[1]]: '#141c27',
  [palette.areas[2]]: '#19222f',
  [palette.taken]: '#3fb950',
  [palette.missed]: '#f85149',
  [palette.missedFill]: '#3c1618',
  [toneColors.success.fill]: '#0f2d1a',
  [toneColors.limit.fill]: '#2e2408',
  [toneColors.limit.line]: '#d29922',
  [toneColors.neutral.fill]: '#21262d',
}

/**
 * A picture follows the theme of whoever looks at it. The colours of the light one stand at every element, for programs
 * that know no styles; in the dark one these rules take their place.
 */
export const themeStyle = [
  '<style>@media (prefers-color-scheme: dark) {',
  ...Object.entries(dark).flatMap(([light, other]) => [
    `[fill="${light}"] { fill: ${other} }`,
    `[stroke="${light}"] { stroke: ${other} }`,
  ]),
  '}</style>',
].join('\n')
