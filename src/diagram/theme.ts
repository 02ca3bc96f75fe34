import { palette, toneColors } from './palette.js'

/** What each colour becomes on a dark page. */
const dark: Readonly<Record<string, string>> = {
  [palette.page]: '#0d1117',
  [palette.card]: '#161b22',
  [palette.text]: '#e6edf3',
  [palette.quiet]: '#9da7b3',
  [palette.line]: '#6e7681',
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
