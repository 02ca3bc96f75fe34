import starlight from '@astrojs/starlight'
import { defineConfig } from 'astro/config'
import { isMainGroup, listGroups } from './src/content/groups.ts'
import { addresses, entryPoints, site } from './src/content/package.ts'
import { finish } from './src/finish.ts'

const { origin, base, repository } = addresses

/** The Node modules that the scenario readers use, replaced for the playground page. */
const shims = `${site}src/playground/node-shims.ts`

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
      description: 'The agent loop as one explicit state machine.',
      pagination: false,
      lastUpdated: false,
      // The page is src/pages/404.astro.
      disable404Route: true,
      // Titles count less than by default, because short titles in the reference would precede every guide.
      pagefind: {
        ranking: {
          pageLength: 0.75,
          termFrequency: 1,
          termSaturation: 1.4,
          termSimilarity: 1,
          metaWeights: { title: 0.6 },
        },
      },
      // Wrapped code needs no scroll bar, so it needs no keyboard focus.
      expressiveCode: { defaultProps: { wrap: true } },
      customCss: ['./src/styles/site.css'],
      components: Object.fromEntries(
        ['Head', 'Hero', 'MarkdownContent', 'PageTitle', 'SocialIcons'].map((name) => [
          name,
          `./src/components/${name}.astro`,
        ]),
      ),
      ...(repository && { social: [{ icon: 'github', label: 'Repository', href: repository }] }),
      sidebar: [
        { label: 'Overview', slug: 'docs' },
        { label: 'Playground', link: '/playground/' },
        ...listGroups().map((group) => ({ ...group, collapsed: !isMainGroup(group.label) })),
        { label: 'Examples', slug: 'examples' },
        { label: 'Changelog', slug: 'changelog' },
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
