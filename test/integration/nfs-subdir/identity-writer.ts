/** A process that gives the share in its argument an identity, and says which it has then. */
import { writeIdentity } from '../../../provisioners/nfs-subdir/share-identity.ts';
import { OpenedDirectory } from '../../../src/index.ts';

await using root = await OpenedDirectory.open(process.argv[2] ?? '');
process.send?.('ready');
const identity = await writeIdentity(root);
process.send?.(identity, () => process.disconnect());
