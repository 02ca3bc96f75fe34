import overview from '../../../visualizations/agent.overview.svg?raw'

const themes = /:root (\{[^}]*\})\s*@media \(prefers-color-scheme: dark\) \{\s*:root (\{[^}]*\})\s*\}/
const frame = /width="(\d+)" height="(\d+)" viewBox="([^"]*)"/

/**
 * The chart as a page element, available before any script loads. Images follow the system theme, and the page has its own theme
 * switch. The heading is cropped, as in `Picture`, because the page has one.
 */
export function drawStillChart(): string {
  const [, width = 0, height = 0, whole = ''] = frame.exec(overview) ?? []
  if (whole === '' || !themes.test(overview))
    throw new Error('The picture of the chart has an unexpected format.')
  return overview
    .replace(themes, ":root[data-theme='light'] $1 :root[data-theme='dark'] $2")
    .replace(frame, `viewBox="8 52 ${Number(width) - 16} ${Number(height) - 56}" data-whole="${whole}"`)
}
