import { palette, toneColors } from './look.js'

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
  ['good', palette.covered, '#3fb950'],
  ['good-fill', toneColors.success.fill, '#0f2d1a'],
  ['limit', toneColors.limit.line, '#d29922'],
  ['limit-fill', toneColors.limit.fill, '#2e2408'],
  ['bad', palette.missed, '#f85149'],
  ['bad-fill', palette.missedFill, '#3c1618'],
  ['neutral-fill', toneColors.neutral.fill, '#21262d'],
]

/**
 * Makes a picture follow the viewer's theme. Elements carry their light colors for programs without CSS; these
 * rules replace them with variables such as `--chart-page`, which switch in dark mode and which a page can
 * override.
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
