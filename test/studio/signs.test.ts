import { readdirSync, readFileSync } from 'node:fs'

const folder = new URL('../../src/studio/client/', import.meta.url)

/** Symbols that every system font has. Others would be an empty box, so `icons.tsx` draws them. */
const common = new Set('–—…·×≥±Δ−←→↔▸▾●“”⟨⟩›')

test('the page only uses characters that every font has', () => {
  const files = readdirSync(folder).filter((name) => /\.(tsx?|css)$/.test(name))
  expect(files.length).toBeGreaterThan(20)
  const rare = files.flatMap((name) =>
    [...readFileSync(new URL(name, folder), 'utf8').matchAll(/[^\p{ASCII}]/gu)].flatMap(([sign]) =>
      common.has(sign) ? [] : [`${name}: ${sign}`],
    ),
  )
  expect(rare).toEqual([])
})
