"""What every other folder may import: errors, limits, files, types, names, caches.  It imports none of them."""
