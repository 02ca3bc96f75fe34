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

/** Each colour by its name, and what it becomes on a dark page. */
const colors: readonly (readonly [name: string, light: string, dark: string])[] = [
  ['page', palette.page, '#0d1117'],
  ['card', palette.card, '#161b22'],
  ['text', palette.text, '#e6edf3'],
  ['quiet', palette.quiet, '#9da7b3'],
  ['line', palette.line, '#6e7681'],
  ['rule', palette.rule, '#3a424c'],
  ['main', palette.main, '#58a6ff'],
  ['area-1', palette.areas[0], '#10161f'],
  ['area-2', palette.areas[1], '#141c27'],
  ['area-3', palette.areas[2], '#19222f'],
  ['good', palette.taken, '#3fb950'],
  ['good-fill', toneColors.success.fill, '#0f2d1a'],
  ['limit', toneColors.limit.line, '#d29922'],
  ['limit-fill', toneColors.limit.fill, '#2e2408'],
  ['bad', palette.missed, '#f85149'],
  ['bad-fill', palette.missedFill, '#3c1618'],
  ['neutral-fill', toneColors.neutral.fill, '#21262d'],
]

/**
 * A picture follows the viewer's theme. Every element has its light colour, for programs without styles. These rules replace
 * the colours by variables (`--chart-page` and so on), which are dark in the dark theme, and which a page can set itself.
 */
export const themeStyle = [
  '<style>',
  `:root { ${colors.map(([name, light]) => `--chart-${name}: ${light};`).join(' ')} }`,
  '@media (prefers-color-scheme: dark) {',
  `:root { ${colors.map(([name, , dark]) => `--chart-${name}: ${dark};`).join(' ')} }`,
  '}',
  ...colors.flatMap(([name, light]) => [
    `[fill="${light}"] { fill: var(--chart-${name}) }`,
    `[stroke="${light}"] { stroke: var(--chart-${name}) }`,
  ]),
  '</style>',
].join('\n')
