import js from '@eslint/js';
import tseslint from 'typescript-eslint';

/**
 * The floors of the sources (docs/architecture.md): imports point downwards only. Each entry forbids, for one folder, the
 * folders above or beside it. `test/tools/floors.test.ts` proves that every row bites.
 */
export const floors = {
  base: ['kube', 'provision', 'csi', 'audit', 'capacity', 'explain', 'diagnostics', 'run', 'cli', 'testing', 'sandbox'],
  kube: ['provision', 'csi', 'audit', 'capacity', 'explain', 'diagnostics', 'run', 'cli', 'testing', 'sandbox'],
  provision: ['csi', 'audit', 'capacity', 'explain', 'diagnostics', 'run', 'cli', 'testing', 'sandbox'],
  csi: ['audit', 'capacity', 'explain', 'diagnostics', 'run', 'cli', 'testing', 'sandbox'],
  audit: ['capacity', 'explain', 'diagnostics', 'run', 'cli', 'testing', 'sandbox'],
  capacity: ['audit', 'explain', 'diagnostics', 'run', 'cli', 'testing', 'sandbox'],
  explain: ['csi', 'audit', 'capacity', 'diagnostics', 'run', 'cli', 'testing', 'sandbox'],
  diagnostics: ['provision', 'csi', 'audit', 'capacity', 'explain', 'run', 'cli', 'testing', 'sandbox'],
  run: ['csi', 'audit', 'capacity', 'cli', 'testing', 'sandbox'],
  cli: ['testing', 'sandbox'],
  /** It stands on the public surface alone, and starts the sandbox as a program. */
  testing: ['base', 'kube', 'provision', 'csi', 'audit', 'capacity', 'explain', 'diagnostics', 'run', 'cli', 'sandbox'],
};

/** Packages that belong to one floor: what knows no gRPC must not import it. */
const packages = {
  base: ['@grpc/*', '@kubernetes/*', 'undici', 'commander', '@opentelemetry/*'],
  kube: ['@grpc/*', '@kubernetes/*', 'commander', '@opentelemetry/*'],
  provision: ['@grpc/*', '@kubernetes/*', 'undici', 'commander', '@opentelemetry/*'],
  csi: ['@kubernetes/*', 'undici', 'commander', '@opentelemetry/*'],
  audit: ['@kubernetes/*', 'undici', 'commander', '@opentelemetry/*'],
  capacity: ['@kubernetes/*', 'undici', 'commander', '@opentelemetry/*'],
  explain: ['@grpc/*', '@kubernetes/*', 'undici', 'commander', '@opentelemetry/*'],
  diagnostics: ['@grpc/*', '@kubernetes/*', 'undici', 'commander', '@opentelemetry/*'],
  run: ['@grpc/*', '@kubernetes/*', 'undici', 'commander', '@opentelemetry/*'],
};

/** Syntax that is nowhere allowed. */
const noEnums = { selector: 'TSEnumDeclaration', message: 'Use a const object with a union type.' };

/**
 * What must not be imported, neither by a statement nor by `import()`, which the rule for imports does not see.
 *
 * @param patterns - regular expressions of module names, and what to say.
 */
const border = (patterns) => ({
  'no-restricted-imports': ['error', { patterns }],
  'no-restricted-syntax': [
    'error',
    noEnums,
    {
      selector: 'ImportExpression[source.type!="Literal"]',
      message: 'Name the module as a literal: the floors are checked.',
    },
    ...patterns.map(({ regex, message }) => ({
      selector: `ImportExpression[source.value=/${regex.replaceAll('/', '\\u002F')}/]`, // a selector takes no other slash
      message,
    })),
  ],
});

const floorRules = Object.entries(floors).map(([floor, above]) => ({
  files: [`src/${floor}/**/*.ts`],
  rules: border([
    {
      regex: `^(\\.\\./)+(${above.join('|')})/`,
      message: `src/${floor} must not import from these folders: imports point downwards only.`,
    },
    { regex: '(^|/)main\\.ts$', message: 'Nothing imports the process edge.' },
    ...(packages[floor] ?? []).map((name) => ({
      regex: `^${name.replace('/*', '')}(/|$)`,
      message: `src/${floor} does not know this package.`,
    })),
  ]),
}));

/** The sandbox is on the other side of the sockets: it shares `src/base`, and nothing of `src` knows it. */
const onlyBase = { regex: '^(\\.\\./)+src/(?!base/)', message: 'sandbox shares only src/base.' };
const sandboxBorders = [
  {
    files: ['sandbox/**/*.ts'],
    rules: border([onlyBase, { regex: '(^|/)main\\.ts$', message: 'Nothing imports the process edge.' }]),
  },
  { files: ['sandbox/cluster/main.ts'], rules: border([onlyBase]) }, // the edge of the bundle, in which it starts the others
  {
    files: ['src/*.ts'],
    rules: border([{ regex: '^(\\.\\./)+sandbox/', message: 'src does not know the sandbox.' }]),
  },
];

/** A program of `provisioners` is what a user would write: it knows its own folder, and the library by its name. */
const notItsOwn =
  'A program of provisioners imports its own files and the public surface, csi-provisioner and what it exports, alone.';
const provisionerBorders = ['^\\.\\./', '^(\\.\\./){2,}'].map((outside, depth) => ({
  files: [`provisioners/*/${depth === 0 ? '*.ts' : '*/**/*.ts'}`],
  rules: border([{ regex: `${outside}|^csi-provisioner/(?!(kube|testing)$)`, message: notItsOwn }]),
}));

/** Those that are shipped with the library are bundled from its sources: they name its public surface by its file. */
export const shippedProvisioners = ['nfs-subdir', 'nfs-server'];
const surfaceAlone =
  'A shipped provisioner imports its own files and the public surface, src/index.ts and src/kube.ts, alone.';
const shippedBorders = shippedProvisioners.flatMap((name) =>
  [
    {
      files: [`provisioners/${name}/*.ts`],
      outside: '^(?!\\.\\./(\\.\\./src/(index|kube)\\.ts$|shared-(audit|nfs)/))\\.\\./',
    },
    {
      files: [`provisioners/${name}/*/**/*.ts`],
      outside: '^(?!\\.\\./\\.\\./\\.\\./src/(index|kube)\\.ts$)(\\.\\./){2,}',
    },
  ].map(({ files, outside }) => ({
    files,
    rules: border([{ regex: `${outside}|^csi-provisioner`, message: surfaceAlone }]),
  })),
);

/** The audit that several of them have is made of the parts of the sidecar's own; both NFS provisioners read volumes alike. */
const sharedBorder = {
  files: ['provisioners/shared-{audit,nfs}/*.ts'],
  rules: border([
    { regex: '^\\.\\./(?!\\.\\./src/)', message: 'What is shared imports its own files and those of src.' },
    { regex: '(^|/)main\\.ts$', message: 'Nothing imports the process edge.' },
  ]),
};

export default tseslint.config(
  { ignores: ['node_modules', 'dist', 'coverage', '.cache', 'src/csi/generated'] },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  ...tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        projectService: { allowDefaultProject: ['eslint.config.js'] },
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            { from: 'package', name: ['test', 'describe', 'it', 'suite'], package: 'node:test' },
          ],
        },
      ],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true, allowNever: true },
      ],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/unified-signatures': 'off',
      '@typescript-eslint/consistent-type-definitions': 'off',
      '@typescript-eslint/dot-notation': 'off',
      '@typescript-eslint/no-unnecessary-condition': [
        'error',
        { allowConstantLoopConditions: 'only-allowed-literals' },
      ],
      '@typescript-eslint/prefer-nullish-coalescing': ['error', { ignorePrimitives: { string: true } }],
      '@typescript-eslint/no-unnecessary-type-parameters': 'off', // JSON from the API is typed by its reader
      '@typescript-eslint/no-unused-vars': ['error', { varsIgnorePattern: '^_', argsIgnorePattern: '^_' }],
      'no-console': 'error',
      'no-restricted-syntax': ['error', noEnums],
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: [
      'src/cli/**',
      'src/run/**',
      'src/testing/**',
      'src/check-node.ts',
      'src/report-crash.ts',
      'src/base/end-when-done.ts',
      'src/csi/generated/**',
    ],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Only cli and run read the environment.' },
        { object: 'process', property: 'exit', message: 'Only the edge of a process ends it.' },
      ],
    },
  },
  ...floorRules,
  ...sandboxBorders,
  ...provisionerBorders,
  ...shippedBorders,
  sharedBorder,
  { files: ['**/*.js'], ...tseslint.configs.disableTypeChecked },
  {
    files: ['test/**/*.ts', 'scripts/**/*.ts', 'sandbox/**/*.ts', 'bench/**/*.ts'],
    rules: { 'no-console': 'off', '@typescript-eslint/no-non-null-assertion': 'off' },
  },
);
