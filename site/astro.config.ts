import { readFileSync } from 'node:fs'
import starlight from '@astrojs/starlight'
import { defineConfig } from 'astro/config'
import { addresses, entryPoints, root, site } from './src/content/package.ts'
import { finish } from './src/finish.ts'

const { origin, base, repository } = addresses

/** The Node modules that the scenario readers use, replaced for the playground page. */
const shims = `${site}src/playground/node-shims.ts`

/** The groups of docs/README.md, in its order. */
function listGroups() {
  const map = readFileSync(`${root}docs/README.md`, 'utf8')
  return map
    .split('\n## ')
    .slice(1)
    .flatMap((section) => {
      const [label = ''] = section.split('\n')
      const pages = Array.from(
        section.matchAll(/^\| \[([^\]]+)\]\(([a-z-]+)\.md\) \|/gm),
        ([, name = '', page = '']) => ({
          label: `${name[0]?.toUpperCase()}${name.slice(1)}`,
          slug: `docs/${page}`,
        }),
      )
      return pages.length === 0 ? [] : [{ label, items: pages }]
    })
}

export default defineConfig({
  ...(origin && { site: origin }),
  base,
  trailingSlash: 'always',
  vite: {
    resolve: {
      alias: { 'node:fs/promises': shims, 'node:http': shims },
      dedupe: ['@codemirror/state', '@codemirror/view'],
    },
    // The size warning does not apply to a lazily loaded library chunk.
    build: { chunkSizeWarningLimit: 1500 },
  },
  integrations: [
    starlight({
      title: 'Statewright',
      description: 'The agent loop as one explicit statechart.',
      pagination: false,
      lastUpdated: false,
      // Wrapped code needs no scroll bar, so it needs no keyboard focus.
      expressiveCode: { defaultProps: { wrap: true } },
      customCss: ['./src/styles/site.css'],
      components: { PageTitle: './src/components/PageTitle.astro', Head: './src/components/Head.astro' },
      ...(repository && { social: [{ icon: 'github', label: 'Repository', href: repository }] }),
      sidebar: [
        { label: 'All documents', slug: 'docs' },
        { label: 'Playground', link: '/playground/' },
        ...listGroups(),
        { label: 'Examples', slug: 'examples' },
        { label: 'Changes', slug: 'changelog' },
        {
          label: 'API',
          collapsed: true,
          items: [
            { label: 'All entry points', slug: 'api' },
            ...entryPoints.map(({ name, folder }) => ({
              label: name,
              slug: `api/${folder === 'index' ? 'statewright' : folder}`,
            })),
          ],
        },
      ],
    }),
    finish(),
  ],
})
